"""Which connections may stay: bounds of their number and time, in all and for each client, without any input or output.

A client that has sent no complete request can only displace others that have not either, and one that does not take its answer only such
clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import Protocol, TypeVar

HEAD_BYTES = 64 << 10
"""The most bytes of a request's line and headers together. Prometheus sends half a KiB; the standard library would take 6.4 MB."""

HEAD_SECONDS = 10.0
"""TLS handshake and head have to be complete after this time, however busy the client looks."""

CONNECTION_SECONDS = 30.0
"""A connection is cut after this time, whatever it does. Prometheus itself ends a scrape after 10 s."""

STALLED_SECONDS = 10.0
"""A client that has taken nothing of its answer for so long is cut."""

SILENT_CONNECTIONS = 256
"""The most connections without a complete request. One more cuts the oldest, of the client that has most of them."""

SILENT_PER_CLIENT = 64
"""The most of them for one client. One more cuts its oldest."""

REQUESTS = 40
"""The most requests that are being answered at a time, probes not counted. One more is refused with 503."""

REQUESTS_PER_CLIENT = 16
"""The most of them for one client."""

REQUEST_THREADS = 8
"""The threads that answer them. Pages are made one at a time in any case."""

PROBES = 64
"""The most probes that are being answered at a time: `/-/healthy` and `/-/ready`."""

PROBE_THREADS = 2
"""The threads that are kept for probes."""

READERS = 32
"""The most clients that take their answers at a time. One more cuts the one that has taken nothing for the longest time."""

READERS_PER_CLIENT = 16
"""The most of them for one client."""

ANSWER_BYTES = 512 << 20
"""The most bytes of all answers that are being taken. Beyond it, too, the client that has taken nothing for the longest time is cut."""

PASSWORDS_WAITING = 64
"""The most passwords that wait for bcrypt. One more is refused with 503: a password takes a tenth of a second of CPU on purpose. The last
one waits for some six seconds: a scrape waits for ten."""

PASSWORDS_PER_CLIENT = 2
"""The most of them for one client, so that one that tries passwords leaves room for others."""

WRONG_SECONDS = 1.0
"""So long a client waits for the answer that its password is wrong, or that there is no time to check it. It takes no place meanwhile."""

WRONG_LOG_SECONDS = 60.0
"""Wrong passwords are a line in the log that often at most."""

RIGHT_PASSWORDS = 100
"""The most right passwords that are remembered, as keyed hashes: scrapes are many. They wait for none that is not known yet."""

WRONG_PASSWORDS = 1000
"""The most wrong passwords that are remembered, likewise, apart from the right ones."""

RETRY_SECONDS = 2
"""After so long a refused client may try again (the header `Retry-After`)."""

LINGER_BYTES = 64 << 10
"""The most bytes that are read and thrown away behind a refused request, so that its client gets the answer and no reset."""


class ConnectionPlaces:
    """The connections of a port, and which to cut when there are too many. Times are of a monotonic clock. Only one thread uses it."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._all: dict[ConnectionPlace, None] = {}  # in the order in which they began
        self.cuts = 0
        """The number of connections that were cut before their end."""

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, place: ConnectionPlace) -> bool:
        return place in self._all

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return any(place.stage is not Stage.SILENT for place in self._all)

    def enter(self, host: str, now: float, cut: Callable[[], object]) -> ConnectionPlace:
        """Give a connection its place; another one is cut if there are too many."""
        place = ConnectionPlace(client_of(host), now, cut, now)
        self._all[place] = None
        silent = [*self._at(Stage.SILENT)]
        mine = [each for each in silent if each.client == place.client]
        if len(mine) > self._bounds.silent_per_client:
            self._cut(_least(mine)[0])
        elif len(silent) > self._bounds.silent:
            self.make_room()
        return place

    def make_room(self) -> bool:
        """Cut one that is silent, also for want of descriptors; returns whether there was any."""
        silent = [*self._at(Stage.SILENT)]
        if silent:
            self._cut(oldest_of_crowd(_least(silent)))
        return bool(silent)

    def ask(self, place: ConnectionPlace, now: float, is_probe: bool) -> bool:
        """Note that the request is complete; returns whether it may be answered. Probes have bounds of their own."""
        stage, most, most_of_client = (
            (Stage.PROBING, self._bounds.probing, self._bounds.probing)
            if is_probe
            else (Stage.ASKING, self._bounds.asking, self._bounds.asking_per_client)
        )
        asking = [*self._at(stage)]
        if len(asking) >= most or sum(each.client == place.client for each in asking) >= most_of_client:
            return False
        place.stage, place.since = stage, now
        return True

    def take(self, place: ConnectionPlace, now: float, nbytes: int) -> None:
        """Note that its answer is being sent; those who take nothing of theirs are cut if there are too many."""
        place.stage, place.since, place.nbytes = Stage.TAKING, now, nbytes
        mine = [each for each in self._at(Stage.TAKING) if each.client == place.client]
        if len(mine) > self._bounds.taking_per_client:
            self._cut(_most_stalled(mine))
        while len(taking := [*self._at(Stage.TAKING)]) > self._bounds.taking or (
            len(taking) > 1 and sum(each.nbytes for each in taking) > self._bounds.answer_bytes
        ):
            self._cut(_most_stalled(taking))

    def end(self, place: ConnectionPlace, now: float, *, answered: bool = False) -> bool:
        """Record that the answer is sent, or refused. Another request follows, or the end of the connection, which may be cut.

        Returns whether it was not cut before.
        """
        place.stage, place.since, place.nbytes = Stage.SILENT, now, 0
        place.answered = place.answered or answered
        return place in self._all

    def leave(self, place: ConnectionPlace) -> None:
        """Give the place up."""
        self._all.pop(place, None)

    def cut_overdue(self, now: float) -> None:
        """Cut those whose time is over."""
        for place in [place for place in self._all if _is_overdue(place, now, self._bounds)]:
            self._cut(place)

    def _at(self, stage: Stage) -> Iterator[ConnectionPlace]:
        return (place for place in self._all if place.stage is stage)

    def _cut(self, place: ConnectionPlace) -> None:
        del self._all[place]
        self.cuts += 1
        place.cut()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one port: connections by stage, in all and for each client, the bytes of answers, and seconds.

    Which connections may stay.

    ``idle_seconds``: what a connection may be silent that has had an answer. ``connection_seconds``: what one may last whatever it does;
    ``age_seconds``: one that does nothing just then.
    """

    silent: int = SILENT_CONNECTIONS
    silent_per_client: int = SILENT_PER_CLIENT
    asking: int = REQUESTS
    asking_per_client: int = REQUESTS_PER_CLIENT
    probing: int = PROBES
    taking: int = READERS
    taking_per_client: int = READERS_PER_CLIENT
    answer_bytes: int = ANSWER_BYTES
    head_seconds: float = HEAD_SECONDS
    idle_seconds: float = HEAD_SECONDS
    connection_seconds: float = CONNECTION_SECONDS
    age_seconds: float = CONNECTION_SECONDS
    stalled_seconds: float = STALLED_SECONDS


class Stage(Enum):
    """The stages of a connection."""

    SILENT = "silent"
    """No complete request has come, or it has been answered."""

    ASKING = "asking"
    """A complete request is being answered."""

    PROBING = "probing"
    """A probe is being answered."""

    TAKING = "taking"
    """The answer is being sent."""


@dataclass(slots=True, eq=False)
class ConnectionPlace:
    """One connection. ``since``: when it began its stage, or took the last bytes of its answer; ``nbytes``: of the answer."""

    client: str
    began: float
    cut: Callable[[], object]
    since: float
    stage: Stage = Stage.SILENT
    nbytes: int = 0
    answered: bool = False


def client_of(host: str) -> str:
    """Who is behind an address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped) if address.ipv4_mapped else str(int(address) >> 64)


def _least(places: Sequence[ConnectionPlace]) -> Sequence[ConnectionPlace]:
    """Those that go before the others."""
    return [each for each in places if not each.answered] or places


def oldest_of_crowd(connections: Sequence[_Connection]) -> _Connection:
    """The first connection, in the order in which they began, of the client with most; of several such clients, of the first."""
    crowd = Counter(each.client for each in connections).most_common(1)[0][0]
    return next(each for each in connections if each.client == crowd)


class _OfClient(Protocol):
    client: str


_Connection = TypeVar("_Connection", bound=_OfClient)


def _most_stalled(places: Iterable[ConnectionPlace]) -> ConnectionPlace:
    return min(places, key=lambda place: place.since)


def _is_overdue(place: ConnectionPlace, now: float, bounds: Bounds) -> bool:
    if now - place.began >= bounds.connection_seconds:
        return True
    if place.stage is Stage.SILENT:
        silent = bounds.idle_seconds if place.answered else bounds.head_seconds
        return now - place.since >= silent or now - place.began >= bounds.age_seconds
    return place.stage is Stage.TAKING and now - place.since >= bounds.stalled_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounts:
    """Counts for metrics. ``cuts``: connections that were cut before their end; ``refusals``: requests that were refused because there was
    too much to do; ``wrong``: requests whose password was wrong;
    ``failures``: changes of the web config file that could not be used.

    The limits for a client of the HTTP servers, and the counts of what was refused. All bounds are in one place, so that a document
    can have them all and a test can compare. A "client" is an address; of IPv6 it is a network of 64 bits, because one machine has
    all addresses of it.
    """

    cuts: int
    refusals: int
    wrong: int
    failures: int
