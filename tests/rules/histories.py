"""Random histories of a shard, most of them ordinary: what two agents publish of the replicas of a few partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from streaming.common.event_row import EventRow
from streaming.common.rows import COORDINATOR, EXPIRED, SEGMENTS, TRANSACTION_STEPS, Kind, Step, pack_rows
from tests.events import Item, appended, batch_of, census_end, range_of, row


def packed(rows: Sequence[EventRow]) -> bytes:
    """Rows as they pass through Spark."""
    return pack_rows(batch_of(rows))


def steps(*of: tuple[Step, int, int, int]) -> bytes:
    """Steps of transactions: what, whose, from where, to where."""
    made = np.zeros(len(of), TRANSACTION_STEPS)
    for item, (step, producer, first, following) in zip(made, of, strict=True):
        item["step"], item["producer_id"], item["first_offset"], item["next_offset"] = step, producer, first, following
    return made.tobytes()


def entries(offset: int) -> bytes:
    """One of a coordinator."""
    values: dict[str, Any] = {name: [0] for name in COORDINATOR.names}
    values |= {"transactional_id": ["t"], "state": ["Ongoing"], "partitions": [[]], "offset": [offset]}
    return pack_rows(pa.RecordBatch.from_pydict(values, schema=COORDINATOR))


def listing(*bases: int) -> bytes:
    """An inventory of so many segments."""
    segments = np.zeros(len(bases), SEGMENTS)
    segments["base_offset"] = bases
    return segments.tobytes()


APPENDS: Mapping[str, Callable[[int, int, Random], dict[str, Any]]] = {
    "append": lambda *_: {},
    "hole": lambda *_: {},
    "overlap": lambda *_: {},
    "unled": lambda *_: {"leads": -1},
    "later epoch": lambda *_: {"log_epoch": 9},
    "another segment": lambda _, size, __: {"segment": size},
    "transactional": lambda at, size, random: {"transactions": steps((random.choice(list(Step)), size % 2, at, at + size))},
    "entries": lambda at, *_: {"coordinator": entries(at), "follows": at},
}
"""What is special about an append at an offset, of so many records."""

OTHERS: Mapping[str, Callable[[int, int, Random], dict[str, Any]]] = {
    "appear": lambda end, *_: {"kind": Kind.APPEARED, "next_offset": end, "segment": end // 20},
    "coordinator appears": lambda end, *_: {"kind": Kind.APPEARED, "next_offset": end, "coordinator": entries(end)},
    "skip": lambda end, size, _: {
        "kind": Kind.SKIPPED,
        "base_offset": end - size,
        "next_offset": end,
        "bytes": 9,
        "reason": "deleted",
    },
    "truncate": lambda end, *_: {"kind": Kind.TRUNCATED, "next_offset": end, "bytes": 3, "segment": end // 20},
    "corrupt": lambda end, *_: {"kind": Kind.CORRUPT, "next_offset": end, "start_position": 5, "reason": "bad"},
    "deleted": lambda _, __, random: {"kind": Kind.GONE, "reason": "deleted", "log_dir": random.choice(["", "/data", "/data\n/other"])},
    "moved": lambda _, __, random: {"kind": Kind.GONE, "reason": "moved", "log_dir": random.choice(["/data", "/data\n/other"])},
    "unclean": lambda end, size, random: {
        "kind": Kind.UNCLEAN,
        "leader_epoch": size,
        "next_offset": end,
        "reason": random.choice(["", "1", "1,2"]),
    },
    "unknown kind": lambda *_: {"kind": "hummed"},
}
"""What else is published of a log that ends there now."""

ORDINARY = ("append",) * 6 + ("facts", "facts", "census", "arrived")
RARE = (
    *sorted({*APPENDS, *OTHERS} - {"append"}),
    "other facts",
    "census without it",
    "new journal",
    "taken over",
    "moved within",
    "recall",
)


def recall() -> EventRow:
    """A run of the query begins."""
    return row(Kind.RECALL, 0, agent="", journal="", topic="", partition=-1, broker=-1)


@dataclass
class FoundPublisher:
    """An agent, its journal, and what it knows of its logs."""

    name: str
    broker: int
    number: int = 1
    seq: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    facts: dict[int, bytes | None] = field(default_factory=dict)
    log_dirs: dict[int, str] = field(default_factory=dict)

    def where(self, log: int, part: int = 0) -> dict[str, Any]:
        journal = f"{self.name}'s {9 - self.number}"  # names do not rise with time
        of_log = {"partition": log, "topic_id": "t" if log == 1 else "", "log_dir": self.log_dirs.get(log, "/data")}
        return {"agent": self.name, "journal": journal, "broker": self.broker, "seq": self.seq, "part": part, **of_log}

    def publish(self, what: str, log: int, size: int, random: Random) -> Iterator[EventRow]:
        """The rows of one event."""
        self.seq += 1
        if what == "moved within":
            self.log_dirs[log] = random.choice(["/data", "/other"])
        elif what in APPENDS:
            yield self._append(what, log, size, random)
        elif what in OTHERS:
            end = self.ends.get(log, 0) + {"skip": size, "truncate": -min(size, self.ends.get(log, 0))}.get(what, 0)
            yield row(**{**self.where(log), **OTHERS[what](end, size, random)})
            self.ends[log] = end
            if what in ("deleted", "moved"):
                del self.ends[log]
        elif what in ("facts", "other facts"):
            if what == "other facts":
                self.facts[log] = listing(0, size)
            yield row(Kind.FOUND, **self.where(log), **self._facts(log))
        elif what == "arrived":
            yield row(Kind.ARRIVED, **{**self.where(-1), "topic": "", "bytes": self.seq * 10})
        elif what == "recall":
            yield recall()
        elif what == "new journal":
            self.number, self.seq = self.number + 1, 0
            for part, (each, end) in enumerate(self.ends.items()):
                yield row(Kind.APPEARED, **self.where(each, part), next_offset=end)
        else:
            yield from self._census([each for each in sorted(self.ends) if each != log or what == "census"], random)

    def _append(self, what: str, log: int, size: int, random: Random) -> EventRow:
        end = self.ends.get(log, 0)
        base = {"hole": end + 2, "overlap": max(0, end - 2)}.get(what, end)
        self.ends[log] = base + size
        values: dict[str, Any] = {
            **self.where(log),
            "leads": random.choice([0, 1, 1, 1]),
            "segment": end // 20,
            "end_position": random.randrange(900),
            "high_watermark": random.choice([-1, end]),
            "active_producers": random.randrange(9),
            "seen_at": random.randrange(99),
            "settled": random.random() < 0.3,
            "sequence_gaps": random.randrange(3),
            "append_delay_buckets": tuple(random.randrange(3) for _ in range(8)),
            "append_delay_ms": random.randrange(99),
            "ahead_batches": random.randrange(3),
            "judges_expiry": random.random() < 0.3,
            "expired": random.choice(
                [None, None, None, np.array([(1, 2, 3, random.randrange(99), 4, 5, end, end - 1)], EXPIRED).tobytes()]
            ),
        }
        if what == "overlap" and size % 2:
            return range_of(detailed=True, items=[Item(offset, offset + 1, 62, 1, 4) for offset in range(base, base + size)], **values)
        values |= {
            "log_epoch": random.choice([-1, 3, 3, 4]),
            "max_timestamp": random.randrange(-1, 99),
            "old_format_batches": random.randrange(3),
            "batch_bytes_buckets": tuple(random.randrange(3) for _ in range(9)),
        }
        return appended(base_offset=base, next_offset=base + size, **values | APPENDS[what](base, size, random))

    def _facts(self, log: int) -> dict[str, Any]:
        end = self.ends.get(log, 0)
        reported = {"log_start_offset": end - 3, "high_watermark": end - 1, "leader": 1, "leader_epoch": 3, "active_producers": 4}
        return reported | {"segments": self.facts.get(log), "oldest_timestamp": log}

    def _census(self, logs: Sequence[int], random: Random) -> Iterator[EventRow]:
        for part, log in enumerate(logs):
            yield row(Kind.CENSUS, **self.where(log, part))
        reason = random.choice(["", "", "/data", "/other\n/data"])
        places = random.choice([[f"{self.broker}:/data"], [f"{self.broker}:/data", f"{self.broker}:/other"], ["1:/other", "2:/data"]])
        yield census_end(*places, topics=random.choice([None, [], ["t"]]), reason=reason, **self.where(-1, len(logs)))


histories = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1]),
        st.one_of(st.sampled_from(ORDINARY), st.sampled_from(ORDINARY + RARE)),
        st.integers(0, 3),
        st.integers(1, 9),
    ),
    min_size=5,
    max_size=60,
)
"""Which of two agents publishes what, of which log, and a size."""


def tellings(history: Sequence[tuple[int, str, int, int]], random: Random) -> list[list[list[EventRow]]]:
    """What each agent publishes, event by event; the second watches the replicas of the same partitions."""
    publishers = [FoundPublisher("a1", 1), FoundPublisher("a2", 2)]
    events = [[list(publisher.publish("appear", log, 1, random)) for log in range(3)] for publisher in publishers]
    for number, what, log, size in history:
        if what == "taken over":  # what the other one watched, or what it watched before
            publishers[number].broker = 3 - publishers[number].broker
            publishers[number].ends = dict(publishers[1 - number].ends)
        else:
            events[number].append(list(publishers[number].publish(what, log, size, random)))
    return events
