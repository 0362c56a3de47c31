"""Ports are given to one test alone, whichever processes take some at the same time."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.ports import free_ports

_TAKE = "from tests.ports import free_ports; print(*free_ports(200), flush=True); input()"


def test_no_port_is_given_twice_to_processes_that_run_at_the_same_time() -> None:
    command = [sys.executable, "-c", _TAKE]
    others = [
        subprocess.Popen(command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    ports = free_ports(200)
    for other in others:
        assert other.stdout is not None
        ports += map(int, other.stdout.readline().split())
    for other in others:
        other.communicate("\n")
    assert len(set(ports)) == 5 * 200


def test_a_port_is_one_that_a_server_can_have() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert port not in free_ports(3)
