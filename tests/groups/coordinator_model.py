"""The coordinator in plain dicts (`OffsetMetadataManager`, line by line), random histories of its log, and what a cleaner leaves."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.groups.group_rows import NOT_UNDERSTOOD
from streaming.kafka.scan.group_records import Commit, EndMarker
from tests.groups.coordinator import record

Key = tuple[str, str, int]
History = tuple[Commit | EndMarker, ...]
Counted = tuple[int, str, int, int, int, int]
"""Offset, topic id, when it was committed, its time of expiry, its record, and the one that made it count."""


@dataclass
class Coordinator:
    offsets: dict[Key, Counted] = field(default_factory=dict)
    pending: dict[int, dict[Key, Counted]] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History) -> "Coordinator":
        made = cls()
        for each in history:
            made.replay(each)
        return made

    def replay(self, one: Commit | EndMarker) -> None:
        if isinstance(one, EndMarker):
            for key, value in self.pending.pop(one.producer_id, {}).items():
                if one.committed and (key not in self.offsets or value[4] > self.offsets[key][4]):
                    self.offsets[key] = (*value[:5], one.record_offset)
            return
        if one.value is None:
            self.offsets.pop(key_of(one), None)
            for commits in self.pending.values():
                commits.pop(key_of(one), None)
            return
        where = self.offsets if one.producer_id < 0 else self.pending.setdefault(one.producer_id, {})
        ends = (one.record_offset, one.record_offset)
        if isinstance(one.value, OffsetCommit):
            where[key_of(one)] = one.value.offset, one.value.topic_id or "", one.value.commit_timestamp, one.value.expire_timestamp, *ends
        else:
            where[key_of(one)] = NOT_UNDERSTOOD, "", -1, -1, *ends

    @property
    def reported(self) -> dict[Key, int]:
        return {key: value[0] for key, value in self.offsets.items()}

    @property
    def waiting(self) -> set[tuple[int, Key, int]]:
        return {(producer, key, value[0]) for producer, commits in self.pending.items() for key, value in commits.items()}


def key_of(one: Commit) -> Key:
    return one.group, one.topic, one.partition


_WORDS = st.one_of(
    *[
        st.builds(
            "{}{}{}{}".format, st.sampled_from(["g:", "h:"]), st.sampled_from(["t.", "u."]), st.integers(0, 9), st.sampled_from(["", "/1"])
        )
    ]
    * 3,
    st.builds("{}:{}{}{}".format, st.sampled_from("gh"), st.integers(0, 9), st.sampled_from(["", "=id"]), st.sampled_from(["", "!77"])),
    *[st.builds("{}{}^{}".format, st.integers(0, 9), st.sampled_from(["", "/1"]), st.sampled_from([7, 8, 9]))] * 2,
    st.builds("{}{}".format, st.sampled_from(["~", "~", "?"]), st.sampled_from(["", "/1"])),
    st.builds("{}{}".format, st.sampled_from("+-"), st.sampled_from([7, 8, 9])),
)


@st.composite
def histories(draw: st.DrawFn, *, ended: bool = False) -> History:
    """With a marker for each transaction that is open at the end, if they are ended."""
    words = draw(st.lists(_WORDS, max_size=40))
    if ended:
        words += [draw(st.sampled_from("+-")) + producer for producer in "789"]
    return tuple(record(word, offset) for offset, word in enumerate(words))  # type: ignore[misc]


@st.composite
def compactions(draw: st.DrawFn) -> tuple[History, History]:
    """A history, and what a cleaner may have left: it removes what a later record replaces, aborted ones, old tombstones, idle markers."""
    history = draw(histories(ended=True))
    ends, aborted = dict[int, bool](), set[int]()
    for one in reversed(history):
        if isinstance(one, EndMarker):
            ends[one.producer_id] = one.committed
        elif one.producer_id >= 0 and not ends[one.producer_id]:
            aborted.add(one.record_offset)
    commits = [one for one in history if isinstance(one, Commit) and one.record_offset not in aborted]
    last = {key_of(one): one.record_offset for one in commits}
    kept = [one for one in commits if one.record_offset in last.values() or draw(st.booleans())]
    firsts = {key_of(one): one.record_offset for one in reversed(kept)}
    left = {one.record_offset for one in kept if one.value is not None or firsts[key_of(one)] != one.record_offset or draw(st.booleans())}
    found, with_data = list[Commit | EndMarker](), set[int]()
    for one in history:
        if isinstance(one, Commit):
            if one.record_offset in left:
                with_data.add(one.producer_id)
                found.append(one)
        elif one.producer_id in with_data or draw(st.booleans()):
            with_data.discard(one.producer_id)
            found.append(one)
    return history, tuple(found)
