"""Looks up the addresses of agents, again and again in the background; and which files a client of agents reads."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streaming.common.targets import Scheme, Target
from streaming.common.units import Address

log = logging.getLogger(__name__)

AGAIN_SECONDS = 5.0
"""How often a name is looked up."""

_FIRST_SECONDS = 3.0


def addresses(targets: Iterable[Target], *, tls: bool) -> tuple[str, ...]:
    """The current addresses of agents, each once, in the form of `streaming.spark.client.agent_client`. ``tls``: for those of names."""
    return tuple(dict.fromkeys(address for target in targets for address in _of_target(target, tls=tls)))


def _of_target(target: Target, *, tls: bool) -> list[str]:
    if target.scheme is Scheme.PLAIN:
        return [str(target.address)]
    if target.scheme is Scheme.TLS:
        return [str(target)]
    found = [Address(host, target.address.port) for host in _name(target.address.host).hosts()]
    return [str(Target(Scheme.TLS, address, target.address.host)) if tls else str(address) for address in found]


@cache
def _name(host: str) -> Name:
    return Name(host)


def resolve(host: str) -> list[str]:
    """All addresses of a host name, as the system resolves them. Raises OSError."""
    return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)})


class Name:
    """One host name. Only the first call of `hosts` waits for an answer, others take the last one.

    The last addresses are kept while the name service is away or finds nothing. If an agent is really gone, it does not answer anyway.
    Thread-safe.
    """

    def __init__(self, host: str, look_up: Callable[[str], list[str]] = resolve, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._look_up = look_up
        self._clock = clock
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._waited = self._running = False
        self._next = clock()
        self._addresses: tuple[str, ...] = ()
        self.problem = ""
        """The reason why the last lookup found nothing, "" if it found something."""

    def hosts(self) -> tuple[str, ...]:
        """The addresses, as far as they are known."""
        with self._lock:
            first, self._waited = not self._waited, True
            if not self._running and self._clock() >= self._next:
                self._running = True
                threading.Thread(target=self._look, daemon=True, name=f"look up {self._host}").start()
        if first:
            self._answered.wait(_FIRST_SECONDS)
        return self._addresses

    def _look(self) -> None:
        try:
            found = tuple(self._look_up(self._host))
            problem = "" if found else "it has no address"
        except OSError as error:
            found, problem = (), str(error.strerror or error)
        with self._lock:
            if problem and problem != self.problem:
                log.warning("a name of agents has no address", extra={"host": self._host, "error": problem, "kept": len(self._addresses)})
            elif found and found != self._addresses:
                log.info("a name of agents has other addresses", extra={"host": self._host, "addresses": ",".join(found)})
            self._addresses, self.problem = found or self._addresses, problem
            self._next = self._clock() + AGAIN_SECONDS
            self._running = False
        self._answered.set()


def unresolved(targets: Iterable[Target]) -> list[str]:
    """The targets whose name had no address at the last lookup."""
    return [str(target) for target in targets if target.scheme is Scheme.NAME and _name(target.address.host).problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFiles:
    """The paths of the files with the agents' CA certificates, the job's own certificate and key, and its token."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    token_file: Path | None = None


NO_FILES = ClientFiles()
