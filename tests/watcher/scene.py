"""What a broker does to its logs, and what becomes of the watcher beside them, as a script: a word for each thing, in order.

A word is about the log ``t-0`` of the first log dir, or about another topic's if its name stands before it (``u:2``). A log is made when it
is first named, or by ``new2`` (with topic id 2; ``new0`` without one; ``new1,50`` that begins at offset 50) and ``pre`` (preallocated;
``pre700`` with segments of so many bytes).

- ``2``: a batch of two records; ``2*10`` ten in one write, ``2@5`` of leader epoch 5, ``2#40`` at offset 40, ``2^7`` in a transaction of
  producer 7, which ``commit7`` ends. ``part70``: its first 70 bytes are written, ``part70,3`` those of one of three records.
- ``roll``; ``cut5``: truncated at offset 5; ``from8``: what lies before is deleted; ``unlink``: the files of deleted segments;
  ``keep0,6``: of the first segment compaction leaves these batches, ``keep6/6`` of the one at offset 6; ``anew100`` dropped and begun anew.
- ``hide``, ``show``: its active segment is no file that can be opened. ``delete`` and ``stray``: its directory is renamed, ``remove``:
  it is gone.
- ``away``, ``unmount`` and ``home``: the log dir; ``exists0`` and ``exists1``: what the metadata says of the topic.
- ``look``: the watcher turns until it rests, with a rescan; ``quick``: without; ``hint``: with a hint at the log's directory, ``root``
  at its log dir, ``all`` at everything; ``turn``: once, ``turn0`` with a budget.
- ``(`` and ``)``: what stands between them happens in the middle of the next turn: the log dirs are listed, and nothing is read yet; or
  from ``(12`` on at its 12th call of the disk.
- ``wait700``: so many milliseconds; ``restart``: another process, ``replace``: another watcher; ``shut``: the watcher's files.
- ``flaw``: bytes that are no batch; ``x100``: so many more.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streaming.broker.disk.opening import Calling
from streaming.broker.watcher.grown_logs import GrownLogs
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import encode
from streaming.simulator.log import LogDir, PartitionLog, compact
from tests.builders import NOW, abort, batch, commit, delete, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.facts import facts_of
from tests.scratch import scratch
from tests.simulated import truncate_fully, write_part
from tests.watcher.station import Counted, Station

_WORD = re.compile(r"(?:([\w.]+):)?([a-z]*)(\S*)")
_APPEND = re.compile(r"(\d+)(?:\*(\d+))?(?:@(\d+))?(?:#(\d+))?(?:\^(\d+))?(?:~(\d+))?")


def size(records: int) -> int:
    """The bytes of a batch of so many records."""
    return len(encode(batch(records), 0))


FLAW = encode(batch(2), 2)[:16] + b"\x09" + encode(batch(2), 2)[17:]
"""A batch whose magic byte is none."""


def shown(events: list[Event]) -> str:
    """What was published but censuses and lists of segments, a word each, one log behind the other; ``-`` where nothing was."""
    by_log = sorted(events, key=lambda event: (event.topic != "t", event.topic, event.partition))
    return " ".join(word for event in by_log if (word := _word(event))) or "-"


def _word(event: Event) -> str:
    topic = "" if event.topic == "t" and not event.partition else f"{event.topic}{event.partition or ''}:"
    reason = f"({event.reason})" if event.reason else ""
    match event.kind:
        case Kind.APPENDED:
            assert event.end_position - event.start_position == event.bytes
            return f"{topic}{event.base_offset}-{event.next_offset}" + (f"/{event.segment}" if event.segment else "")
        case Kind.APPEARED:
            return f"{topic}at{event.next_offset}"
        case Kind.TRUNCATED:
            return f"{topic}cut{event.next_offset}"
        case Kind.SKIPPED:
            return f"{topic}skip{event.base_offset}-{event.next_offset}{reason}"
        case Kind.CORRUPT:
            return f"{topic}flaw{event.next_offset}"
        case Kind.GONE:
            return f"{topic}gone({event.reason},{','.join(Path(each).name for each in event.log_dir.splitlines())})"
    return ""


class Scene:
    """Log dirs d0, d1, ... of one broker, and a station over them that a reader has registered to."""

    def __init__(self, root: Path, dirs: int = 1, start_from: str = "earliest") -> None:
        self.root, self.start_from = root, start_from
        self.disks = [log_dir(root, f"d{number}") for number in range(dirs)]
        self.station = Station(*[disk.path for disk in self.disks])
        self.logs: dict[str, PartitionLog] = {}
        self.made: list[PartitionLog] = []
        self.besides: Counter[tuple[str, UUID | None]] = Counter()  # bytes of flaws, and of logs that were removed
        self.reports: list[str] = []
        self._meanwhile = "", ""  # at which call, and what
        self.reached = False  # it has happened
        if start_from:
            self.station.begin(start_from)

    def close(self) -> None:
        self.station.close()
        for log in self.made:
            log.close()
        for disk in self.disks:
            disk.release()

    @property
    def disk(self) -> LogDir:
        return self.disks[0]

    def log(self, topic: str = "t") -> PartitionLog:
        return self.logs[topic] if topic in self.logs else self.make(topic)

    def make(self, topic: str, disk: int = 0, **how: Any) -> PartitionLog:
        self.logs[topic] = partition(self.disks[disk], topic, **{"topic_id": 1 if topic == "t" else 100 + sum(topic.encode()), **how})
        self.made.append(self.logs[topic])
        return self.logs[topic]

    def play(self, script: str) -> str:
        """What each turn or look of it has published."""
        begun, words = len(self.reports), iter(script.split())
        for word in words:
            if word.startswith("("):
                self._meanwhile = word[1:], " ".join(takewhile(lambda each: each != ")", words))
                continue
            topic, verb, values = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]
            if verb in _OF_LOGS:
                _OF_LOGS[verb](self, topic or "t", values)
            else:
                _OF_STATION[verb](self, topic or "t", *[int(each) for each in re.findall(r"\d+", values)])
        return " | ".join(self.reports[begun:])

    @contextmanager
    def _held_up(self) -> Iterator[None]:
        """At one call of the watcher, what happens meanwhile happens."""
        (at, script), self._meanwhile = self._meanwhile, ("", "")
        where, what = (Calling, "__enter__") if at else (GrownLogs, "read")
        go_on, points = getattr(where, what), count()

        def late(*values: Any) -> Any:
            if next(points) == int(at or 0):
                self.reached = True
                self.play(script)
            return go_on(*values)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(where, what, late)
            yield

    def result(self, script: str) -> str:
        """What it has published, and what is not as it must be in the end: each byte is counted or skipped, and the watcher rests."""
        shown, station = self.play(script), self.station
        assert station.watcher.caught_up
        assert station.turn() is False
        assert self.held("(deleted)") == 0
        kinds = Counter(event.kind for event in station.events if event.topic == "t")
        if not kinds[Kind.GONE] or station.watcher.tails():
            counted, facts = station.fold_of("t"), facts_of(self.logs["t"])
        else:
            assert (station.watcher.tails(), station.journal.cursors(), self.held()) == ([], [], 0)
            counted, facts = Counted(self.log().log_end_offset, truncations=kinds[Kind.TRUNCATED]), facts_of(self.log())
            counted.bytes = sum(
                event.bytes for event in station.events if event.topic == "t" and event.kind in (Kind.APPENDED, Kind.SKIPPED)
            )
        missing = self.besides["t", self.log().topic_id] + facts.appended.bytes - counted.bytes - sum(counted.skipped.values())
        if not missing and not counted.skipped and counted.batches and not self.besides:
            assert (counted.batches, counted.records) == (facts.appended.batches, facts.appended.records)
        others = (
            (f"{missing} missing", missing),
            (f"ends at {counted.next_offset}", counted.next_offset != self.log().log_end_offset),
            (f"{counted.truncations} truncations", counted.truncations != kinds[Kind.TRUNCATED]),
            (f"stopped at {counted.corrupt_at}", counted.corrupt_at),
        )
        return "; ".join([shown, *(text for text, differs in others if differs)])

    def names(self) -> set[str]:
        """The logs that are watched."""
        return {str(tail.cursor.log) for tail in self.station.watcher.tails()}

    def watched(self) -> Path:
        """Where the only one lies."""
        (tail,) = self.station.watcher.tails()
        return tail.partition.path

    def held(self, *parts: str) -> int:
        """How many segments the watcher has open."""
        return len([flags for flags in descriptors(str(self.root), ".log", *parts) if not flags & os.O_RDWR])

    def look(self, hints: set[Path] | None = None) -> list[Event]:
        with self._held_up():
            events = self.station.look(hints)
        self.reports.append(shown(events))
        return events

    def turn(self, hints: set[Path] | None = None, budget: int | None = None) -> bool:
        begun = len(self.station.events)
        with self._held_up():
            more = self.station.turn(hints, budget=budget)
        self.reports.append(shown(self.station.events[begun:]))
        return more

    def append(self, topic: str, values: str) -> None:
        found = _APPEND.fullmatch(values).groups()  # type: ignore[union-attr]
        records, times, epoch, offset, producer, value_bytes = (None if each is None else int(each) for each in found)
        sender = {} if producer is None else {"producer": producer, "transactional": True}
        one = batch(records or 1, value_bytes=value_bytes or 100, **sender)  # type: ignore[arg-type]
        self.log(topic).append(*[one] * (times or 1), leader_epoch=epoch or 0, base_offset=offset)

    def _keep(self, topic: str, values: str) -> None:
        kept, _, segment = values.partition("/")
        compact(self.log(topic), int(segment or 0), {int(each) for each in kept.split(",")})

    def _from(self, topic: str, offset: int) -> None:
        log = self.log(topic)
        log.delete_records(offset)
        log.config = log.config.__class__(segment_bytes=log.config.segment_bytes, preallocate=log.config.preallocate, compacted=True)
        log.delete_old_segments(self.station.clock.now)

    def write(self, topic: str, data: bytes) -> None:
        """Bytes that no broker writes, after the end of the log."""
        with self.log(topic).active.path("log").open("ab") as file:
            file.write(data)
        self.besides[topic, self.log(topic).topic_id] += len(data)

    def _hide(self, topic: str) -> None:
        segment = self.log(topic).active.path("log")
        segment.rename(segment.with_name("hidden"))
        segment.symlink_to(segment)  # which nobody can open, whoever asks

    def _show(self, topic: str) -> None:
        segment = self.log(topic).active.path("log")
        segment.unlink()
        segment.with_name("hidden").rename(segment)

    def _away(self, topic: str, number: int = 0) -> None:
        path = self.disks[number].path
        path.rename(path.with_name(f"{path.name}-away"))

    def _unmount(self, topic: str, number: int = 0) -> None:
        self._away(topic, number)
        self.disks[number].path.mkdir()

    def _home(self, topic: str, number: int = 0) -> None:
        path = self.disks[number].path
        if path.exists():
            path.rmdir()
        path.with_name(f"{path.name}-away").rename(path)


def _remove(scene: Scene, topic: str) -> None:
    log = scene.logs.pop(topic)
    scene.besides[topic, log.topic_id] += facts_of(log).appended.bytes
    log.close()
    scene.disk.forget(log)
    shutil.rmtree(log.directory)


_OF_LOGS: dict[str, Callable[[Scene, str, str], Any]] = {"": Scene.append, "keep": Scene._keep}
_OF_STATION: dict[str, Callable[..., Any]] = {
    "new": lambda scene, topic, topic_id=1, base_offset=0: scene.make(topic, topic_id=topic_id or None, base_offset=base_offset),
    "pre": lambda scene, topic, segment_bytes=1 << 20: scene.make(topic, preallocate=True, segment_bytes=segment_bytes),
    "commit": lambda scene, topic, producer: scene.log(topic).append(commit(producer)),
    "abort": lambda scene, topic, producer: scene.log(topic).append(abort(producer)),
    "part": lambda scene, topic, count, records=1: write_part(scene.log(topic), batch(records), size=count),
    "roll": lambda scene, topic: scene.log(topic).roll(),
    "cut": lambda scene, topic, offset: scene.log(topic).truncate(offset),
    "from": Scene._from,
    "unlink": lambda scene, topic: scene.log(topic).unlink_deleted(scene.station.clock.now + 10**9),
    "anew": lambda scene, topic, offset: truncate_fully(scene.log(topic), offset, NOW),
    "flaw": lambda scene, topic: scene.write(topic, FLAW),
    "x": lambda scene, topic, count: scene.write(topic, b"x" * count),
    "hide": Scene._hide,
    "show": Scene._show,
    "delete": lambda scene, topic: delete(scene.disk, scene.log(topic)),
    "stray": lambda scene, topic: scene.log(topic).rename(f"{topic}-0.{0:032x}-stray"),
    "remove": _remove,
    "rm": lambda scene, topic: scene.log(topic).remove(),
    "away": Scene._away,
    "unmount": Scene._unmount,
    "home": Scene._home,
    "exists": lambda scene, topic, number: scene.station.cluster.topics.update({topic: bool(number)}),
    "look": lambda scene, topic: scene.look(),
    "quick": lambda scene, topic: scene.look(set()),
    "hint": lambda scene, topic: scene.look({scene.log(topic).directory}),
    "root": lambda scene, topic: scene.look({scene.disk.path}),
    "all": lambda scene, topic: scene.look(scene.station.everything()),
    "turn": lambda scene, topic, budget=None: scene.turn(budget=budget),
    "wait": lambda scene, topic, passed_ms: scene.station.clock.__setattr__("now", scene.station.clock.now + passed_ms),
    "restart": lambda scene, topic: scene.station.restart(),
    "replace": lambda scene, topic: scene.station.replace_watcher(),
    "shut": lambda scene, topic: [tail.close() for tail in scene.station.watcher.tails()],
}


@contextmanager
def scene(dirs: int = 1, start_from: str = "earliest") -> Iterator[Scene]:
    """A new one, in memory."""
    with scratch() as root:
        made = Scene(Path(root), dirs, start_from)
        try:
            yield made
        finally:
            made.close()


def result(script: str) -> str:
    """What becomes of a script in a world of its own."""
    with scene() as one:
        return one.result(script)
