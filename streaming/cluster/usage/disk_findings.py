"""What is wrong with disks, as sentences: what is full soon, and what lies there for nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from streaming.broker.protocol.disk_json import FULL, DiskAnswer, LeftoverFiles, LogDirUse
from streaming.common.formatting import TimeWords, format_count, format_list, format_name, format_size, format_time

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000

ADVICE = {
    "stray_only": "the topic is live, and no replica in sync has these records: they are perhaps the only copy. Never delete them. With "
    "the broker stopped, copy the stray elsewhere, move the directory of the live log out of the log dir (it has what was appended since), "
    "write partition.metadata into the stray if it lacks that (two lines: version: 0, topic_id: ID, as kafka-topics.sh --describe has it), "
    "remove its .index and .timeindex files (they end in zeros, by which retention would delete the records as of 1970; the broker makes "
    "them anew), take everything after the number of the partition from its name, and start the broker.",
    "unnamed": "the next start of the broker makes a stray of such a log, and serves an empty one instead. Before that, write "
    "partition.metadata into its directory: two lines, version: 0 and topic_id: ID, as kafka-topics.sh --describe has it.",
    "stray_unknown": "the broker was not assigned them when it started, and Kafka neither serves nor deletes them. Whether a replica in "
    "sync has their records is not known here: name the log dirs of the brokers in sync, too. Until it is known, do not delete them.",
    "stray": "the topic is deleted, or a replica in sync has the same last batch. Kafka neither serves nor deletes them; they may be "
    "deleted by hand.",
    "foreign": "topic not in the metadata: the cluster does not know the topic of these logs, or not with such a partition. A broker that "
    "starts with them makes them strays. Check that the log dir is of this cluster; if the topic is deleted, they may be deleted by hand.",
    "future": "a move between log dirs does not go on, and its copy stays. See kafka-log-dirs.sh --describe and the broker's log; start "
    "the move again, or move the replica back. Never delete such a directory while the broker runs.",
    "delete": "the broker deletes them a minute after the replica. If it runs, see its log; at its next start it deletes them.",
    "deleted": "the broker unlinks them after a minute. If it runs, see its log; at its next start it unlinks them.",
    "deleted_open": "the files are deleted, and a process holds them open: their space is free once it closes them. A broker does within "
    "minutes, and segtail's agent once it has read them. If it stays, the directory shows the process and its files: start it again.",
    "cleaner": "compaction was interrupted, and the broker removes what it left at its next start. Check that the cleaner runs.",
}
"""What to do about leftovers, by kind."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: ``what`` it is, a sentence, and what to do about it."""

    what: str
    advice: str


def findings(answer: DiskAnswer, full_within_ms: int) -> Iterator[Finding]:
    """What is wrong, the most severe first."""
    for each in answer.log_dirs:
        if is_full_within(each, answer.at_ms, full_within_ms):
            yield Finding(full_sentence(each, answer.at_ms), FULL_ADVICE)
    for kind, advice in ADVICE.items():
        held = [each for each in answer.leftovers if each.kind == kind]
        if held:
            yield Finding(_leftovers(kind, held), advice)


FULL_ADVICE = (
    "When it is full, Kafka takes the log dir offline, or stops if it has no other. Lower the retention of what can do with less "
    "(--what-if shows what that frees), move replicas away, or add disk."
)


def is_full_within(each: LogDirUse, now_ms: int, full_within_ms: int) -> bool:
    """Whether a log dir is full, or will be within a time."""
    return each.outlook == FULL and each.full_ms <= now_ms + full_within_ms


def full_sentence(each: LogDirUse, now_ms: int) -> str:
    """When a log dir is full."""
    return f"{format_name(each.log_dir, 300)} is {full_phrase(each.full_ms, TimeWords(now_ms))}"


def full_phrase(full_ms: int, times: TimeWords) -> str:
    """When something is full, to follow "is"."""
    if full_ms <= times.now_ms:
        return "full"
    at_ms = rough(full_ms, times.now_ms)
    return f"full {times.ago(at_ms)}" if times.lasting else f"full {times.ago(at_ms)} ({format_time(at_ms)})"


def rough(full_ms: int, now_ms: int) -> int:
    """The time of a forecast as it is told, the earlier one: a mean of minutes or hours shows no second."""
    left_ms = full_ms - now_ms
    unit_ms = _HOUR_MS if left_ms > 24 * _HOUR_MS else _MINUTE_MS
    return full_ms if left_ms < _MINUTE_MS else now_ms + left_ms // unit_ms * unit_ms


def _leftovers(kind: str, held: list[LeftoverFiles]) -> str:
    size = format_size(sum(each.taken for each in held))
    some = format_list([format_name(each.path, 300) for each in held], 3)
    if kind == "unnamed":
        return f"{kind}: {format_count(len(held), 'log')} without partition.metadata: {some}"
    if kind == "deleted_open":
        return f"{kind}: {size} of deleted files of log dirs that a process holds open: {some}"
    state = {"stray_only": "with perhaps the only copy of live topics' records", "stray_unknown": "that no broker serves"}
    return f"{kind}: {size} in {format_count(len(held), 'place')} {state.get(kind, 'that should be gone')}: {some}"
