"""Ranks write blocks of one file through MPI-IO, alone and collectively, and read them back."""

import sys

import numpy as np
from mpi4py import MPI

BLOCK, BLOCKS = 8192, 64

world = MPI.COMM_WORLD
me, size = world.rank, world.size
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for k in range(BLOCKS):
    data = np.full(BLOCK, (k * size + me) % 251, np.uint8)
    file.Write_at(((k * size) + me) * BLOCK, data)
base = BLOCKS * size * BLOCK
view = np.full(BLOCK * BLOCKS, me + 1, np.uint8)
file.Write_at_all(base + me * view.size, view)
file.Sync()
world.Barrier()
back = np.empty(BLOCK, np.uint8)
for k in range(BLOCKS):
    file.Read_at((k * size + (me + 1) % size) * BLOCK, back)
    assert (back == (k * size + (me + 1) % size) % 251).all(), (k, back[0])
file.Close()
