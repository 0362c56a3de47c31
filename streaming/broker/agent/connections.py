"""Which connections of the agent's port may stay: how many of all and of one client, and how long one may be without a call.

Whoever has begun no call can only displace others that have not either, and whoever had no answer yet, as one without a token, only those
two; of those that had one, a client with many displaces its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.common.web.places import client_of, oldest_of_crowd

MOST = 256
"""Connections at the same time. A job has one or two for its driver and one for each executor."""

MOST_OF_CLIENT = 128
"""The most of them of one address; of IPv6, of a network of 64 bits."""

SILENT_SECONDS = 10.0
"""How long a connection may take until it has begun its first call, the TLS handshake included; and to take why it is cut."""

STALLED_SECONDS = 120.0
"""How long a connection may take nothing of what it is sent. gRPC cannot end such a one: what it says last is not taken either."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection.

    Attributes:
        calls: how many it has begun.
        answered: whether one of them was answered. A refusal is no answer.
        stalled: since when it takes nothing of what it is sent.
    """

    client: str
    began: float
    cut: Callable[[], object]
    calls: int = 0
    answered: bool = False
    stalled: float | None = None


class Connections:
    """For one thread. Times are of a monotonic clock."""

    def __init__(self) -> None:
        self._all: dict[Connection, None] = {}  # in the order in which they began
        self.cuts = 0
        """The number of connections that were cut."""

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, host: str, now: float, cut: Callable[[], object]) -> Connection:
        """Note a new connection; another one is cut if there are too many.

        Of its client's those go first that have begun no call, then those that had no answer, the oldest first.
        """
        made = Connection(client_of(host), now, cut)
        own = [each for each in self._all if each.client == made.client]
        if len(own) >= MOST_OF_CLIENT:
            self._cut(_least(own)[0])
        elif len(self._all) >= MOST:
            self.make_room()
        self._all[made] = None
        return made

    def make_room(self) -> bool:
        """Cut one of those without a call; else of those without an answer; else of all: of the client with most of them, the oldest.

        Returns whether there was any.
        """
        found = _least(list(self._all))
        if found:
            self._cut(oldest_of_crowd(found))
        return bool(found)

    def leave(self, connection: Connection) -> None:
        """Note that a connection has ended."""
        self._all.pop(connection, None)

    def cut_overdue(self, now: float) -> None:
        """Cut those that have begun no call in time, or take nothing."""
        for each in [each for each in self._all if _is_overdue(each, now)]:
            self._cut(each)

    def _cut(self, connection: Connection) -> None:
        del self._all[connection]
        self.cuts += 1
        connection.cut()


def _is_overdue(each: Connection, now: float) -> bool:
    if each.stalled is not None and now - each.stalled >= STALLED_SECONDS:
        return True
    return not each.calls and now - each.began >= SILENT_SECONDS


def _least(connections: list[Connection]) -> list[Connection]:
    """Those that go before the others, the oldest first."""
    unanswered = [each for each in connections if not each.answered]
    return [each for each in unanswered if not each.calls] or unanswered or connections
