"""Ports for servers that are started, stopped and started again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Not one that the system gives to outgoing connections: nobody else gets it while the server is down, and who
    knocks there then is not connected to itself."""
    lowest = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32768
    for port in random.SystemRandom().sample(range(10_000, max(lowest, 12_000)), 100):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
