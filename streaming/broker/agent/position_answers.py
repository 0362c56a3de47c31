"""An agent's answers to readers of logs by positions: how far they can be read, and what lies between two positions of each.

Both are functions of the disk and their arguments. Nothing is kept of the client: what is kept of the disk spares work alone.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator

from streaming.broker.agent.service import serve_only
from streaming.broker.agent.slots import Slots
from streaming.broker.disk.logdirs import LogDir, LogDirs, Partition
from streaming.broker.excerpts.position_between import between, moves_of
from streaming.broker.excerpts.position_plan import KnownLogs, PositionPlanner, SelectedOrRead
from streaming.broker.protocol.consumer_messages import Selection, check_pattern
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.broker.protocol.position_messages import MOST_AT_ONCE, MOST_LOGS, Between, BetweenRequest, Missing, Reached, ReachRequest
from streaming.common.log_positions import LogName, Position, Positions, pack, unpack, without_begins
from streaming.common.logs import RareLog
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, quoted

log = logging.getLogger(__name__)

AT_ONCE = 4
"""The most plans that are made at the same time."""

WAITING, PRINCIPALS_WAITING = 24, 8
"""The most plans that wait for something new, of all principals and of one. One more is answered at once."""

MOST_WAIT_SECONDS = 30.0
"""The longest wait of a plan, whatever is asked for."""

WAIT_SECONDS, WAIT_SHARE = 0.3, 10
"""A plan that waits looks again after so long, or after so many times as long as it took to look."""

LEAST_EXCERPT_BYTES = 1 << 20
"""Smaller excerpts are refused: a log would be millions of them."""

_AWAY_NAMED = 20
_NOTHING = Selection(topics=("",))


class PositionAnswers:
    """Answers how far logs can be read, and what lies between positions. Thread-safe.

    Args:
        name: of the agent.
        wait: waits so many seconds.
    """

    def __init__(
        self,
        name: str,
        log_dirs: LogDirs,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._name, self._log_dirs, self._clock, self._wait = name, log_dirs, clock, wait
        self._known = KnownLogs()
        self._planning = threading.BoundedSemaphore(AT_ONCE)
        self._waiting = Slots(WAITING, PRINCIPALS_WAITING)
        self._notes = RareLog(log)

    def reached(self, request: ReachRequest, principal: str = "") -> Reached:
        """How far logs can be read; waits for something new if it may.

        Raises:
            AgentError: the request is not valid, or a log dir cannot be read.
            VersionError: its sender is of a version that this agent does not serve.
        """
        serve_only(request.protocol)
        start, selection = _start_of(request.start), _selection_of(request)
        if request.wait_ms <= 0:
            return self._reached(request, start, selection)
        with self._waiting.slot(principal) as may_wait:
            ends_at = self._clock() + (min(request.wait_ms / 1000, MOST_WAIT_SECONDS) if may_wait else 0.0)
            while True:
                began = self._clock()
                found, now = self._reached(request, start, selection), self._clock()
                if found.changed or now >= ends_at:
                    return found
                self._wait(min(ends_at - now, max(WAIT_SECONDS, WAIT_SHARE * (now - began))))

    def _reached(self, request: ReachRequest, start: StartFrom | int, selection: Selection) -> Reached:
        with self._planning:
            return self._planned(request, start, selection)

    def _planned(self, request: ReachRequest, start: StartFrom | int, selection: Selection) -> Reached:
        at, (log_dirs, away) = without_begins(_positions(request.at)), self._dirs(request.broker)

        def unreadable(partition: Partition, error: OSError | str) -> None:
            away.append(f"{partition.path}: {getattr(error, 'strerror', None) or error}")

        planner = PositionPlanner(start, lambda opened: opened.end, known=self._known, unreadable=unreadable)
        listed = self._known.partitions(log_dirs, SelectedOrRead(selection, at), unreadable)
        partitions = [each for each in listed if selection.has(each[0].topic, each[0].partition)]
        ends = planner.plan(partitions, at, request.budget, first=request.first)
        there = {LogName(each.topic, each.partition) for each, _ in listed}
        if away:
            self._notes.write(logging.WARNING, "a plan leaves out what cannot be read", {"what": "; ".join(away[:_AWAY_NAMED])})
        return Reached(
            agent=self._name,
            brokers=self._log_dirs.brokers,
            changed=pack({name: each for name, each in ends.items() if at.get(name) != each}),
            absent=pack({name: each for name, each in at.items() if name not in there}),
            available=pack({name: each for name, each in planner.available.items() if ends[name] != each}),
            matched=len(partitions),
            away=away[:_AWAY_NAMED],
        )

    def between(self, request: BetweenRequest) -> Iterator[bytes]:
        """What lies between two positions of logs, some at a time.

        Raises:
            AgentError: the request is not valid, or a log cannot be read now.
            VersionError: its sender is of a version that this agent does not serve.
        """
        serve_only(request.protocol)
        if request.excerpt_bytes < LEAST_EXCERPT_BYTES:
            raise AgentError(f"excerpts have {LEAST_EXCERPT_BYTES} bytes or more, and {request.excerpt_bytes} are asked for")
        before, to = _positions(request.before), _positions(request.to)
        log_dirs, away = self._dirs(request.broker)
        wanted = SelectedOrRead(_NOTHING, {**before, **to})
        found = self._known.partitions(log_dirs, wanted, lambda partition, why: away.append(f"{partition.path}: {why}"))
        there = {LogName(each.topic, each.partition): (each, start) for each, start in found}
        absent: list[LogName] = []
        excerpts, missing = list[Excerpt](), list[Missing]()
        for each in _readable(between(moves_of(before, to), there, request.excerpt_bytes, absent)):
            if isinstance(each, Excerpt):
                excerpts.append(each)
            else:
                missing.append(each)
            if len(excerpts) + len(missing) >= MOST_AT_ONCE:
                yield Between(agent=self._name, excerpts=excerpts, missing=missing).encode()
                excerpts, missing = [], []
        gone = pack({name: Position("", 0) for name in absent})
        yield Between(agent=self._name, excerpts=excerpts, missing=missing, absent=gone, last=True, away=away[:_AWAY_NAMED]).encode()

    def _dirs(self, broker: int) -> tuple[list[LogDir], list[str]]:
        """The log dirs of a broker that can be used, and the others by name. Who has none has not looked: they may be elsewhere now."""
        unavailable = self._log_dirs.unavailable
        own = [each for each in self._log_dirs if each.broker == broker]
        if not own:
            return [], [f"any log dir of broker {broker}"]
        return [each for each in own if each.path not in unavailable], [str(each.path) for each in own if each.path in unavailable]


def _start_of(written: str) -> StartFrom | int:
    if written in set(StartFrom):
        return StartFrom(written)
    if written.isascii() and written.isdigit() and len(written) <= 18:
        return int(written)
    raise AgentError(f"no such start: {quoted(written)}; there are {', '.join(StartFrom)}, and times in Unix milliseconds")


def _selection_of(request: ReachRequest) -> Selection:
    selection = request.selected.selection()
    try:
        check_pattern(selection.pattern)
    except ValueError as error:
        raise AgentError(f"no such pattern of topics: {quoted(selection.pattern)}: {error}") from error
    return selection


def _positions(packed: str) -> Positions:
    try:
        return unpack(packed, MOST_LOGS)
    except ValueError as error:
        raise AgentError(f"no positions: {error}") from error


def _readable(found: Iterator[Excerpt | Missing]) -> Iterator[Excerpt | Missing]:
    try:
        yield from found
    except OSError as error:
        raise AgentError(f"{error.filename} cannot be read: {error.strerror or error}") from error
