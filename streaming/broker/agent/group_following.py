"""Follows the logs of all group coordinators in the log dirs: which there are, how fast they are read, and what to do if one cannot be.

Each log dir has a thread of its own. It reads only from log dirs that are available, and only what the watcher has published.
"""

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from streaming.broker.agent.coordinator_log import PIECE_BYTES, ReplayedLog, followed
from streaming.broker.agent.dir_threads import DirThreads, Presence
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.calls import bytes_read
from streaming.broker.protocol.group_messages import FollowedLog, Following, KnownLog
from streaming.broker.scrub.scrub_pace import ScrubPace
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey
from streaming.errors import FormatError
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replays import COORDINATED_TOPICS, Replay, new_replay
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

REST_SECONDS = 1.0
"""How often the logs of a log dir are checked for growth."""

RETRY_SECONDS = 10.0
"""How long a log that cannot be read is left alone, the first time; each time twice as long."""

MOST_RETRY_SECONDS = 600.0

CPU_SHARE = 0.3
"""The most of one core that a first reading takes. Following the logs of a busy coordinator takes a few percent."""


class GroupFollowing:
    """All coordinators' logs of an agent. Its threads call `step`; any thread may call `changes` and read the numbers.

    Args:
        tails: the logs that are watched at this moment.
        rate: bytes that are read in a second, of all logs together.
        groups_limit: the most groups that are followed.
        cpu_share: the most of one core that is used.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        tails: Callable[[], list[Tail]],
        *,
        rate: int,
        groups_limit: int,
        cpu_share: float = CPU_SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_dirs = log_dirs
        self._limits = {topic: GroupLimit(groups_limit) for topic in COORDINATED_TOPICS}  # a share group is in both
        self._pace = ScrubPace(rate, cpu_share)
        self._clock = clock
        self._process, self._numbers = uuid.uuid4().hex, count(1)
        self._dirs = {
            path: _FollowedDir(Presence(path, log_dirs, tails, COORDINATED_TOPICS.__contains__, clock))
            for path in (each.path for each in log_dirs)
        }
        self._threads = DirThreads("groups", self._dirs, self.step)
        self.errors = 0
        """How often a log could not be read on."""

    def start(self, stop: threading.Event) -> None:
        """Follow the logs until ``stop`` is set."""
        self._threads.start(stop)

    def join(self, seconds: float) -> None:
        """Wait at most so long until the threads have ended."""
        self._threads.join(seconds)

    def step(self, path: Path) -> float:
        """Read one piece of each log in a log dir that has grown. Returns for how many seconds to rest."""
        here = self._dirs[path]
        self._meet(here)
        read, spent, now, more = bytes_read(), time.thread_time(), self._clock(), False
        for key, each in list(here.logs.items()):
            if path in self._log_dirs.unavailable:
                break
            if each.unread(now) and now >= here.again_at.get(key, 0.0):
                more = self._read(here, key, each, now) or more
        rest = self._pace.spent(bytes_read() - read, time.thread_time() - spent, self._clock())
        return rest if more else max(rest, REST_SECONDS)

    def _meet(self, here: "_FollowedDir") -> None:
        """Take up the logs that have come, and let go of those that are not there any more, or not under a tail that goes on."""
        present = here.presence.look(here.logs)
        if present.same:
            return
        for key in present.gone:
            here.forget(key).close()
        for key, tail in present.here.items():
            log = here.logs.get(key)
            if log is not None and log.tail is not tail and not log.adopt(tail):
                here.forget(key).close()
            if key not in here.logs:
                here.logs[key] = ReplayedLog(tail, partial(self._new, key))

    def _new(self, key: LogKey, replaced: Replay | None) -> Replay:
        limit = self._limits[key.topic] if replaced is None else self._limits[key.topic].beside(replaced.groups)
        return new_replay(key, f"{self._process}.{next(self._numbers)}", limit)

    def _read(self, here: "_FollowedDir", key: LogKey, each: ReplayedLog, now: float) -> bool:
        """Read a piece; returns whether there is more to read at once."""
        try:
            more = each.step(here.buffer, now)
        except Exception as error:  # noqa: BLE001 - an error in one log does not stop the others
            self._fail(here, key, each, now, error)
            return False
        if each.read:
            here.tries.pop(key, None)
        return more

    def _fail(self, here: "_FollowedDir", key: LogKey, each: ReplayedLog, now: float, error: Exception) -> None:
        self.errors += 1
        here.tries[key] += 1
        rest = min(MOST_RETRY_SECONDS, RETRY_SECONDS * 2 ** (here.tries[key] - 1))
        here.again_at[key] = now + rest
        each.begin_again()
        log.warning(
            "a group coordinator's log cannot be read: its groups are not known until it can",
            exc_info=None if isinstance(error, (OSError, FormatError)) else error,
            extra={"log": str(key), "path": each.tail.path, "error": str(error), "again_in_seconds": rest},
        )

    # --- called from other threads

    def changes(self, requests: Iterable[KnownLog]) -> Iterator[GroupChanges | FollowedLog]:
        """The changes of each log since the versions that a job knows, one log after the other."""
        had = {LogKey(each.broker, each.topic, each.coordinator, each.topic_id): each for each in requests}
        unavailable = self._log_dirs.unavailable
        for path, here in self._dirs.items():
            for key, each in list(here.logs.items()):
                if path in unavailable or each.tail.away:
                    yield followed(each.tail, Following.UNAVAILABLE)
                else:
                    yield each.answer(had.get(key))

    def counts(self) -> Counter[Following]:
        """How many logs are read, being read, or unavailable."""
        found = Counter[Following]()
        unavailable = self._log_dirs.unavailable
        for path, here in self._dirs.items():
            for each in list(here.logs.values()):
                found[Following.UNAVAILABLE if path in unavailable else Following.READ if each.read else Following.READING] += 1
        return found


class _FollowedDir:
    """The logs of one log dir. Only its thread changes it."""

    def __init__(self, presence: Presence) -> None:
        self.presence = presence
        self.logs: dict[LogKey, ReplayedLog] = {}
        self.tries = Counter[LogKey]()
        self.again_at: dict[LogKey, float] = {}
        self.buffer: Bytes = np.empty(PIECE_BYTES, np.uint8)

    def forget(self, key: LogKey) -> ReplayedLog:
        """Forget a log, and that it could not be read; returns it."""
        self.tries.pop(key, None)
        self.again_at.pop(key, None)
        return self.logs.pop(key)
