"""A site with as many I/O nodes as there may be: the last one serves, and its bytes are its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

from limits import HANG

PENSTOCK = (sys.executable, "-m", "penstock.cli")
LAST = 1023


def penstock(folder: Path, *words: str) -> str:
    command = [*PENSTOCK, *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=HANG
    ).stdout


def until_it_serves(folder: Path, node: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline and node.poll() is None:
        status = json.loads(penstock(folder, "status", "--state", "state", "--json"))
        if status["io_nodes"][LAST]["state"] == "serving":
            return
    raise AssertionError("the I/O node does not serve")


def test_a_job_goes_through_the_last_of_1024(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    penstock(tmp_path, "key", "key")
    nodes = ("--io-nodes", "0", "--remote-io-nodes", str(LAST + 1))
    listen = ("--listen", "127.0.0.1:0", "--key-file", "key", "--state", "state")
    penstock(tmp_path, "up", "--root", "data", *nodes, *listen)
    try:
        address = (tmp_path / "state" / "listen").read_text().strip()
        own = ("--socket", "node.sock", "--control", "node.control", "--with-parent", "--coherent")
        site = ("--controller", address, "--key-file", "key", "--root", "data")
        here = ("--listen", "127.0.0.1:0", "--number", str(LAST))
        command = [*PENSTOCK, "ionode", *own, *site, *here]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as node:
            try:
                until_it_serves(tmp_path, node)
                write = ("dd", "if=/dev/zero", "of=data/file", "bs=1M", "count=4", "status=none")
                penstock(tmp_path, "run", "--state", "state", "--", *write)
                status = json.loads(penstock(tmp_path, "status", "--state", "state", "--json"))
            finally:
                node.terminate()
    finally:
        penstock(tmp_path, "down", "--state", "state")
    (job,) = status["jobs"]
    assert job["bytes_by_io_node"] == {str(LAST): 4 << 20}
    assert job["io_nodes_used"] == [LAST]
    assert len(status["io_nodes"]) == LAST + 1
