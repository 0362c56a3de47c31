"""Loopback ports that no other test takes, in this process or in another one, and no connection that goes out."""

import os
import random
import socket
from collections.abc import Iterator

_FIRST, _END, _BLOCK = 20_000, 32_000, 40
"""Below the ephemeral ports: no server without a port of its own, and no outgoing connection, takes one of these."""

_claims: list[socket.socket] = []
"""One for each block of ports that this process has; the kernel lets go of them when it ends, however it ends."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, and that are given to nobody else."""
    return [next(_ports) for _ in range(count)]


def _unused() -> Iterator[int]:
    blocks = list(range(_FIRST, _END, _BLOCK))
    random.SystemRandom().shuffle(blocks)
    for block in blocks:
        if _claimed(block):
            yield from (port for port in range(block, block + _BLOCK) if _free(port))
    raise AssertionError(f"no port between {_FIRST} and {_END} is left: {len(_claims)} blocks of {_BLOCK} were this process' own")


def _claimed(block: int) -> bool:
    """A name that one process of a machine can have at a time. Linux alone has such names: elsewhere chance has to do."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        if os.uname().sysname == "Linux":
            claim.bind(f"\0segtail-test-ports-{block}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


_ports = _unused()
