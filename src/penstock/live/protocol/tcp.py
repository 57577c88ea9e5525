"""Connections between hosts that break off when the network between them does."""

import socket


def notice_loss(connection: socket.socket, seconds: float) -> None:
    """Let a connection fail when the other host has not been heard for about so long.

    What was sent and is not acknowledged ends it by the user timeout; where nothing is under way
    the kernel asks once a second.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(round(seconds), 1))
    milliseconds = max(round(seconds * 1000), 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
