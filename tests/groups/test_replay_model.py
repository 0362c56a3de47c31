"""The replay against a coordinator in plain dicts, over random histories with transactions, tombstones and compaction."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Current
from streaming.kafka.groups.group_rows import NOT_REPLICATED, REMOVED, GroupChanges
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecords
from tests.groups.test_commit_log import new_log, value
from tests.groups.test_commit_store import LOG, reported

Key = tuple[str, str, int]
History = tuple[Commit | EndMarker, ...]

KEYS = [("g", "t", 0), ("g", "t", 1), ("g", "u", 0), ("h", "t", 0)]
PRODUCERS = [7, 8, 9]


@dataclass
class Coordinator:
    """`OffsetMetadataManager`, line by line."""

    offsets: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)

    def replay(self, record: Commit | EndMarker) -> None:
        if isinstance(record, EndMarker):
            for key, (offset, at) in self.pending.pop(record.producer_id, {}).items():
                if record.committed and (key not in self.offsets or at > self.offsets[key][1]):
                    self.offsets[key] = offset, at
            return
        key = record.group, record.topic, record.partition
        if record.value is None:
            self.offsets.pop(key, None)
            for commits in self.pending.values():
                commits.pop(key, None)
        else:
            assert isinstance(record.value, OffsetCommit)
            where = self.offsets if record.producer_id < 0 else self.pending.setdefault(record.producer_id, {})
            where[key] = record.value.offset, record.record_offset

    @property
    def reported(self) -> dict[Key, int]:
        return {key: offset for key, (offset, _) in self.offsets.items()}

    @property
    def waiting(self) -> set[tuple[int, Key, int]]:
        return {(producer, key, offset) for producer, commits in self.pending.items() for key, (offset, _) in commits.items()}


def replayed(history: History) -> Coordinator:
    coordinator = Coordinator()
    for record in history:
        coordinator.replay(record)
    return coordinator


@st.composite
def histories(draw: st.DrawFn) -> History:
    records: list[Commit | EndMarker] = []
    steps = st.tuples(st.sampled_from("ccccttde"), st.sampled_from(KEYS), st.sampled_from(PRODUCERS), st.booleans())
    for at, (step, (group, topic, partition), producer, committed) in enumerate(draw(st.lists(steps, max_size=40))):
        if step == "e":
            records.append(EndMarker(at, producer, committed))
        else:
            content = None if step == "d" else value(draw(st.integers(0, 9)))
            records.append(Commit(at, producer if step == "t" else -1, group, topic, partition, content))
    return tuple(records)


def ended(history: History, draw: st.DrawFn) -> History:
    """With a marker for each transaction that is open at its end."""
    open_ones: dict[int, None] = {}
    for record in history:
        if isinstance(record, EndMarker):
            open_ones.pop(record.producer_id, None)
        elif record.producer_id >= 0:
            open_ones[record.producer_id] = None
    markers = [EndMarker(len(history) + index, producer, draw(st.booleans())) for index, producer in enumerate(open_ones)]
    return (*history, *markers)


@st.composite
def ended_histories(draw: st.DrawFn) -> History:
    return ended(draw(histories()), draw)


def compacted(history: History, draw: st.DrawFn) -> History:
    """What a cleaner may have left: it removes what a later record replaces, aborted ones, old tombstones, markers without data."""
    ends: dict[int, bool] = {}
    aborted: set[int] = set()
    for record in reversed(history):
        if isinstance(record, EndMarker):
            ends[record.producer_id] = record.committed
        elif record.producer_id >= 0 and not ends[record.producer_id]:
            aborted.add(record.record_offset)
    commits = [record for record in history if isinstance(record, Commit) and record.record_offset not in aborted]
    last = {(record.group, record.topic, record.partition): record.record_offset for record in commits}
    kept = [record for record in commits if record.record_offset in last.values() or draw(st.booleans())]
    firsts: dict[Key, int] = {}
    for record in kept:
        firsts.setdefault((record.group, record.topic, record.partition), record.record_offset)
    tombstones = {
        record.record_offset
        for record in kept
        if record.value is None and firsts[record.group, record.topic, record.partition] == record.record_offset and draw(st.booleans())
    }
    left = {record.record_offset for record in kept} - tombstones
    found: list[Commit | EndMarker] = []
    with_data: set[int] = set()
    for record in history:
        if isinstance(record, Commit):
            if record.record_offset in left:
                with_data.add(record.producer_id)
                found.append(record)
        elif record.producer_id in with_data or draw(st.booleans()):
            with_data.discard(record.producer_id)
            found.append(record)
    return tuple(found)


@st.composite
def compactions(draw: st.DrawFn) -> tuple[History, History]:
    history = draw(ended_histories())
    return history, compacted(history, draw)


def replay(log: CommitLog, history: History) -> None:
    for record in history:
        log.replay(GroupRecords((record,), 0), record.record_offset + 1)


def applied(offsets: dict[Key, int], changes: GroupChanges) -> dict[Key, int]:
    """What a reader knows after some changes."""
    if changes.whole:
        offsets = {}
    for row in changes.commits.to_pylist():
        key = row["group"], row["topic"], row["partition"]
        offsets.pop(key, None)
        if row["offset"] != REMOVED:
            offsets[key] = row["offset"]
    return offsets


def pending_of(changes: GroupChanges) -> set[tuple[int, Key, int]]:
    return {(row["producer_id"], (row["group"], row["topic"], row["partition"]), row["offset"]) for row in changes.pending.to_pylist()}


@given(histories(), st.sets(st.integers(0, 40)))
def test_the_log_is_replayed_as_the_coordinator_does_it(history: History, cuts: set[int]) -> None:
    log, begin = new_log(), 0
    for end in [*sorted(cut for cut in cuts if cut < len(history)), len(history)]:
        log.replay(GroupRecords(history[begin:end], 0), end)
        begin = end
    expected = replayed(history)
    changes = log.changes(0)
    assert applied({}, changes) == expected.reported
    assert pending_of(changes) == expected.waiting


@given(histories(), st.sets(st.integers(0, 40)))
def test_changes_one_after_the_other_are_the_whole(history: History, looks: set[int]) -> None:
    log, known, version = new_log(), dict[Key, int](), 0
    for at, record in enumerate(history):
        replay(log, (record,))
        if at in looks:
            changes = log.changes(version)
            known, version = applied(known, changes), changes.version
            assert known == replayed(history[: at + 1]).reported
    assert applied(known, log.changes(version)) == replayed(history).reported


@given(ended_histories())
def test_once_all_transactions_have_ended_the_last_record_of_each_key_counts(history: History) -> None:
    log = new_log()
    replay(log, history)
    assert applied({}, log.changes(0)) == replayed(history).reported
    assert pending_of(log.changes(0)) == set()


@given(compactions())
def test_a_compacted_log_shows_the_same(both: tuple[History, History]) -> None:
    history, left = both
    log = new_log()
    replay(log, left)
    assert applied({}, log.changes(0)) == replayed(history).reported


@given(histories(), histories(), st.integers(0, 40))
def test_after_a_truncation_the_new_edition_counts_alone(first: History, second: History, kept: int) -> None:
    log, store = new_log(), CommitStore()
    replay(log, first)
    store.take("a", log.changes(0))
    store.table({LOG: Current("a", len(first))})
    cut = min(kept, len(first))
    later = tuple(record for record in second if record.record_offset >= cut)
    again = new_log()
    again.edition = "e2"
    replay(again, (*first[:cut], *later))
    store.take("a", again.changes(0))
    assert reported(store.table({LOG: Current("a", 1000)})) == replayed((*first[:cut], *later)).reported


@given(histories(), st.lists(st.integers(0, 5), max_size=41))
def test_the_store_shows_what_is_below_the_high_watermark(history: History, lags: list[int]) -> None:
    log, store, high = new_log(), CommitStore(), 0
    for at, record in enumerate(history):
        replay(log, (record,))
        store.take("a", log.changes(store.version("a", LOG)[1]))
        high = max(high, at + 1 - (lags[at] if at < len(lags) else 0))
        then, found = replayed(history[:high]), store.table({LOG: Current("a", high)})
        stated = reported(found)
        waiting = {key for key, offset in stated.items() if offset == NOT_REPLICATED}
        assert {key: offset for key, offset in stated.items() if key not in waiting} == then.reported
        assert waiting <= {(each.group, each.topic, each.partition) for each in history[high : at + 1] if isinstance(each, Commit)} | {
            key for _, key, _ in then.waiting
        }
        assert {(each.producer_id, (each.group, each.topic, each.partition), each.offset) for each in found.pending} == then.waiting
    assert reported(store.table({LOG: Current("a", len(history))})) == replayed(history).reported
