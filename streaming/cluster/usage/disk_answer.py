"""The answer about disks: log dirs with their outlook, and rows by topic, partition, log dir or kind; and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import streaming
from streaming.broker.disk.dir_usage import DiskFileKind
from streaming.broker.protocol.disk_json import FULL, KIND_WORDS, NEVER, UNKNOWN, DiskAnswer, DiskRow, KindUse, LeftoverFiles, LogDirUse
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.cluster.usage.reckoning import DAY_MS, DirFacts, Full, LogsThere, Reckoning, ReplicaSizes, RestartFacts
from streaming.common.arrays import Flags, Longs
from streaming.common.units import TimeWords, format_count, format_duration, format_list, format_name, format_size, format_time
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules import space_outlook
from streaming.rules.restart_cost import LogSegments, on_no_disk_bytes

MOST_UNREAD = 5
"""How many unread files an answer names of each log dir."""

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000

ADVICE = {
    "stray_only": "the topic is live, and no replica in sync has these records: they are perhaps the only copy. Never delete them. Stop "
    "the broker, copy the stray elsewhere, and move the directory of the live log out of the log dir (it has what was appended since). "
    "Write partition.metadata into the stray if it lacks that (two lines: version: 0, topic_id: ID, as kafka-topics.sh --describe has it). "
    "Remove its .index and .timeindex files (they end in zeros, by which retention would delete the records as of 1970; the broker makes "
    "them anew). Take everything after the number of the partition from its name, and start the broker.",
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

FULL_ADVICE = (
    "When it is full, Kafka takes the log dir offline, or stops if it has no other. Lower the retention of what can do with less "
    "(--what-if shows what that frees), move replicas away, or add disk."
)

_ROUGH_UNITS = ((24 * _HOUR_MS, _HOUR_MS), (10 * _MINUTE_MS, _MINUTE_MS), (_MINUTE_MS, 10_000))


def answer_of(disk: DiskContents, by: str, limit: int, *, offset: int = 0, topics: Collection[str] = (), text: str = "") -> DiskAnswer:
    """The answer with the largest rows from ``offset`` on, at most ``limit``.

    Args:
        topics: rows are of their replicas alone; none for all.
        text: rows are of partitions whose name holds it, in upper or lower case; by log dir or kind those that hold it themselves,
            a kind also as a table writes it.
    """
    in_force = reckoning = Reckoning(disk.dirs, disk.replicas, disk.logs, disk.now_ms)
    if disk.tried is not None:
        disk = replace(disk, logs=disk.tried)
        reckoning = Reckoning(disk.dirs, disk.replicas, disk.logs, disk.now_ms)
    every = list(_ROWS[by](disk, reckoning, None))
    some = _selected(disk, reckoning, by, topics, text.casefold()) if topics or text else every
    rows = sorted(some, key=lambda row: (-row.taken, row.topic, row.partition, row.broker, row.log_dir, row.kind))
    return DiskAnswer(
        at_ms=disk.now_ms,
        version=streaming.__version__,
        by=by,
        total=len(every),
        matched=len(rows),
        offset=offset,
        log_dirs=list(_log_dirs(disk, reckoning)),
        rows=rows[offset : offset + limit],
        leftovers=sorted(disk.leftovers, key=lambda each: -each.taken),
        what_if=list(disk.what_if),
        in_force=[] if reckoning is in_force else list(_log_dirs(disk, in_force)),
        doubts=[*disk.doubts, *_doubts(disk)],
        beside=list(disk.beside),
        away=list(disk.away),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiskContents:
    """What was disk on disks."""

    dirs: Sequence[DirFacts]
    replicas: ReplicaSizes
    logs: LogsThere
    leftovers: Sequence[LeftoverFiles]
    doubts: Sequence[str]
    now_ms: int
    tried: LogsThere | None = None  # the logs with configurations that are tried, which ``what_if`` names
    what_if: Sequence[str] = ()
    away: Sequence[AwayBroker] = ()  # brokers whose log dirs no process holds
    beside: Sequence[str] = ()  # further log dirs of their brokers, which the request does not name


def _by_topic(disk: DiskContents, reckoning: Reckoning, selected: Flags | None) -> Iterator[DiskRow]:
    names = list(dict.fromkeys(disk.replicas.topics))
    numbers = {name: number for number, name in enumerate(names)}
    group = np.fromiter((numbers[name] for name in disk.replicas.topics), np.int64, len(disk.replicas.topics))
    limits = {disk.replicas.topics[item]: each for item, each in zip(disk.logs.items.tolist(), disk.logs.limits, strict=True)}
    lost = on_no_disk(disk.replicas, disk.logs)
    heads = [
        DiskRow(
            topic=name,
            taken=0,
            on_no_disk=lost.get(name, _UNKNOWN).size,
            on_no_disk_partly=lost.get(name, _UNKNOWN).partly,
            policy=limits[name].cleanup_policy or "none" if name in limits else "",
            limits_assumed=name in limits and limits[name].assumed,
        )
        for name in names
    ]
    return _by_group(disk, reckoning, group, heads, selected)


def _by_partition(disk: DiskContents, reckoning: Reckoning, selected: Flags | None) -> Iterator[DiskRow]:
    replicas = disk.replicas
    places = zip(replicas.topics, replicas.partition.tolist(), replicas.directory.tolist(), strict=True)
    heads = [
        DiskRow(topic=topic, partition=partition, broker=disk.dirs[number].broker, log_dir=disk.dirs[number].log_dir, taken=0)
        for topic, partition, number in places
    ]
    return _by_group(disk, reckoning, np.arange(len(heads)), heads, selected)


def _by_dir(disk: DiskContents, reckoning: Reckoning, selected: Flags | None) -> Iterator[DiskRow]:
    heads = [DiskRow(broker=each.broker, log_dir=each.log_dir, taken=0) for each in disk.dirs]
    rows = _by_group(disk, reckoning, disk.replicas.directory, heads, selected)
    if selected is not None:  # of a log dir all that is in it, of some replicas what they take
        yield from rows
        return
    for row, each, replicas in zip(rows, disk.dirs, _replicas(disk), strict=True):
        taken, apparent = (sum(sizes) for sizes in zip(*each.kinds.values(), strict=True)) if each.kinds else (0, 0)
        yield replace(row, taken=taken, apparent=apparent, replicas=replicas)


def _by_kind(disk: DiskContents, _reckoning: Reckoning, _selected: Flags | None) -> Iterator[DiskRow]:
    for kind in DiskFileKind:
        sizes = [each.kinds[kind.word] for each in disk.dirs if kind.word in each.kinds]
        if any(map(any, sizes)):
            yield DiskRow(kind=kind.word, taken=sum(taken for taken, _ in sizes), apparent=sum(size for _, size in sizes))


_ROWS = {"topic": _by_topic, "partition": _by_partition, "dir": _by_dir, "kind": _by_kind}


def _by_group(
    disk: DiskContents, reckoning: Reckoning, group: Longs, heads: Sequence[DiskRow], selected: Flags | None
) -> Iterator[DiskRow]:
    """Rows of groups of replicas.

    Args:
        group: of each replica.
        heads: the rows without their sums.
        selected: of each replica, whether it counts; a row without such a one is left out. None if all count.
    """
    replicas, count = disk.replicas, len(heads) + 1
    if selected is not None:
        group = np.where(selected, group, len(heads))
    sums = reckoning.summed(group[reckoning.items], count)
    columns = {
        name: np.bincount(group, getattr(replicas, name), minlength=count).astype(np.int64).tolist()
        for name in ("taken", "apparent", "segments", "not_live")
    }
    lives = np.bincount(group, replicas.live, minlength=count).astype(int).tolist()
    unread = np.bincount(group, replicas.unread, minlength=count).astype(int).tolist()
    present = np.bincount(group, minlength=count).tolist()
    for item, head in enumerate(heads):
        if selected is not None and not present[item]:
            continue
        yield replace(
            head,
            replicas=lives[item],
            taken=columns["taken"][item],
            apparent=columns["apparent"][item],
            segments=columns["segments"][item],
            not_live=columns["not_live"][item],
            growth_day=sums.growth_day[item],
            growth_unknown=sums.growth_unknown[item] + unread[item],
            growth_unread=unread[item],
            frees_now=sums.frees_now[item],
            frees_day=sums.frees_day[item],
            next_ms=sums.next_ms[item],
            next_start_of=sums.next_start_of[item],
        )


def _replicas(disk: DiskContents) -> list[int]:
    """The live replicas in each log dir, as kafka-log-dirs.sh counts them: without that of the metadata log."""
    counted = disk.replicas.live & np.array([topic != METADATA_TOPIC for topic in disk.replicas.topics], np.bool_)
    return [int(each) for each in np.bincount(disk.replicas.directory, counted, minlength=len(disk.dirs))]


def on_no_disk(replicas: ReplicaSizes, logs: LogsThere) -> dict[str, OnNoDisk]:
    """The topics of some logs. Quorums flush what they write to the metadata log, so nothing is to be found of that."""
    topics = [replicas.topics[item] for item in logs.items.tolist()]
    places = list(zip(topics, replicas.partition[logs.items].tolist(), strict=True))
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
    partition = np.fromiter((numbers[place] for place in places), np.int64, len(places))
    segments = LogSegments(first=logs.logs.first, base=logs.logs.base, size=logs.logs.size)
    most = on_no_disk_bytes(segments, logs.points, logs.logs.log_end, partition, len(numbers)).tolist()
    seen = np.bincount(partition, logs.points.known, minlength=len(numbers))
    wanted = np.full(len(numbers), -1, np.int64)
    np.maximum.at(wanted, partition, logs.assigned)
    partly = ((wanted < 0) | (seen < wanted)).tolist()
    found: dict[str, OnNoDisk] = {}
    for (topic, _), size, part in zip(numbers, most, partly, strict=True):
        if topic == METADATA_TOPIC:
            continue
        before = found.get(topic, OnNoDisk(0, 0))
        found[topic] = OnNoDisk(-1 if min(size, before.size) < 0 else before.size + size, before.partly + part)
    return found


@dataclass(frozen=True, slots=True)
class OnNoDisk:
    """A topic: the most bytes of it that are on no disk, -1 if that is not known of each partition."""

    size: int
    partly: int  # of so many partitions not every replica is observed, or it is not known how many there are; then it may be less


_UNKNOWN = OnNoDisk(-1, 0)


def _selected(disk: DiskContents, reckoning: Reckoning, by: str, topics: Collection[str], text: str) -> Iterator[DiskRow]:
    """The rows of some replicas. ``text``: in lower case."""
    replicas, of_partitions = disk.replicas, by in ("topic", "partition")
    names = zip(replicas.topics, replicas.partition.tolist(), strict=True)
    wanted = ((not topics or topic in topics) and (not of_partitions or text in f"{topic}-{number}".casefold()) for topic, number in names)
    selected = np.fromiter(wanted, np.bool_, len(replicas.topics)) if topics or of_partitions else None
    rows = _ROWS[by](disk, reckoning, selected)
    return (row for row in rows if of_partitions or text in f"{row.log_dir}{row.kind} {KIND_WORDS.get(row.kind, '')}".casefold())


def _log_dirs(disk: DiskContents, reckoning: Reckoning) -> Iterator[LogDirUse]:
    sums = reckoning.summed(reckoning.directory, len(disk.dirs))
    unread = np.bincount(disk.replicas.directory, disk.replicas.unread, minlength=len(disk.dirs)).astype(int).tolist()
    moving = np.bincount(reckoning.directory, disk.logs.logs.moving, minlength=len(disk.dirs)).astype(int).tolist()
    counts = _replicas(disk)
    systems = {device: number for number, device in enumerate(dict.fromkeys(each.device for each in disk.dirs if each.up))}
    for number, each in enumerate(disk.dirs):
        if not each.up:
            yield LogDirUse(broker=each.broker, log_dir=each.log_dir, up=False, problem=each.problem)
            continue
        full, uncleaned = reckoning.full(number), reckoning.full(number, compacted_grow=True)
        # of a log dir without replicas it is known that nothing grows: the metadata log is deleted behind its snapshots
        known = sums.growth_day[number] >= 0 or not counts[number]
        yield LogDirUse(
            broker=each.broker,
            log_dir=each.log_dir,
            file_system=systems[each.device],
            taken=sum(taken for taken, _ in each.kinds.values()),
            apparent=-1 if any(apparent < 0 for _, apparent in each.kinds.values()) else sum(size for _, size in each.kinds.values()),
            kinds=[
                KindUse(kind=kind, taken=taken, apparent=apparent) for kind, (taken, apparent) in each.kinds.items() if taken or apparent
            ],
            replicas=counts[number],
            free=each.free,
            capacity=each.capacity,
            outlook=_outlook(full, known),
            full_ms=-1 if full is None else _time(full.at_ms),
            full_earliest_ms=-1 if full is None or full.earliest_ms >= full.at_ms else _time(full.earliest_ms),
            pace_day=-1 if full is None or full.over_ms < 0 else round(full.pace * DAY_MS),
            pace_over_ms=-1 if full is None else full.over_ms,
            full_uncleaned_ms=-1 if uncleaned is None or not known else _time(uncleaned.at_ms),
            checkpoint_ms=each.checkpoint_ms,
            unread=len(each.unread),
            unread_of=[f"{path}: {why}" for path, why in list(each.unread.items())[:MOST_UNREAD]],
            growth_day=sums.growth_day[number],
            growth_over_ms=reckoning.growth_over_ms(number),
            again_day=sums.again_day[number],
            others_day=each.others_day,
            growth_unknown=sums.growth_unknown[number] + unread[number],
            growth_unread=unread[number],
            frees_now=sums.frees_now[number],
            frees_day=sums.frees_day[number],
            next_ms=sums.next_ms[number],
            next_start_of=sums.next_start_of[number],
            moving=moving[number],
            recovery_logs=each.restart.logs,
            recovery_bytes=each.restart.scanned,
            recovery_seconds=each.restart.seconds(each.restart.scanned),
            recovery_threads=each.restart.threads,
            clean=each.restart.clean,
            not_fsynced_bytes=each.restart.not_fsynced,
            recovering_logs=each.restart.left_logs,
            recovering_bytes=each.restart.left_bytes,
            recovering=list(each.restart.working),
            recovered_ms=_recovered_ms(each.restart, disk.now_ms),
        )


def _outlook(full: Full | None, known: bool) -> str:
    """The outlook in a word: unknown where only a growth of minutes would fill it. ``known``: some log's growth is, or there is none."""
    if full is not None and full.at_ms != space_outlook.NEVER:
        return FULL
    return NEVER if full is not None and known and full.earliest_ms == space_outlook.NEVER else UNKNOWN


def _time(at_ms: float) -> int:
    return -1 if at_ms == space_outlook.NEVER else round(at_ms)


def _recovered_ms(restart: RestartFacts, now_ms: int) -> int:
    seconds = restart.seconds(restart.left_bytes)
    return -1 if seconds < 0 else now_ms + round(1000 * seconds)


def _doubts(disk: DiskContents) -> Iterator[str]:
    for each in disk.dirs:
        if not each.up:
            yield why_down(each.log_dir, each.problem)
        elif each.unread:
            some = format_list([f"{format_name(path, 300)}: {why}" for path, why in each.unread.items()], 3)
            yield f"{format_count(len(each.unread), 'file or directory')} in {format_name(each.log_dir)} cannot be read: {some}".replace(
                "directorys", "directories"
            )
        elif each.free < 0:
            yield f"the free space of {format_name(each.log_dir)} is not known"


def why_down(log_dir: str, problem: str) -> str:
    """Why a log dir cannot be read, in a clause that names it; most problems do."""
    return problem if log_dir in problem else f"log dir {format_name(log_dir)} cannot be read: {problem}"


def findings(answer: DiskAnswer, full_within_ms: int) -> Iterator[Finding]:
    """What is wrong, the most severe first.

    What is wrong with disks, as sentences: what is full soon, and what lies there for nothing.
    """
    for each in answer.log_dirs:
        if is_full_within(each, answer.at_ms, full_within_ms):
            yield Finding(full_sentence(each, answer.at_ms), FULL_ADVICE)
    for kind, advice in ADVICE.items():
        held = [each for each in answer.leftovers if each.kind == kind]
        if held:
            yield Finding(_leftovers(kind, held), advice)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: ``what`` it is, a sentence, and what to do about it."""

    what: str
    advice: str


def is_full_within(each: LogDirUse, now_ms: int, full_within_ms: int) -> bool:
    """Whether a log dir is full, or will be within a time."""
    return each.outlook == FULL and each.full_ms <= now_ms + full_within_ms


def full_sentence(each: LogDirUse, now_ms: int) -> str:
    """When a log dir is full, at least if it fills as it does now: never one time alone where that is not certain."""
    name, times = format_name(each.log_dir, 300), TimeWords(now_ms)
    lasts = f"if it goes on to fill as in the last {format_duration(each.pace_over_ms / 1000)}"
    if each.outlook != FULL:
        return f"when {name} is full is not known: {full_phrase(each.full_earliest_ms, times).removeprefix('full ')} {lasts}"
    found = f"{name} is {full_phrase(each.full_ms, times)}"
    if each.full_ms <= now_ms:
        return found
    if each.full_earliest_ms < 0 <= each.pace_over_ms:
        return f"{found}, {lasts}"
    found += " at the latest" if each.growth_unknown else ""
    if each.full_earliest_ms >= 0:
        found += f", and {full_phrase(each.full_earliest_ms, times).removeprefix('full ')} {lasts}"
    return found


def full_phrase(full_ms: int, times: TimeWords) -> str:
    """When something is full, to follow "is"."""
    if full_ms <= times.now_ms:
        return "full"
    at_ms = rough(full_ms, times.now_ms)
    return f"full {times.ago(at_ms)}" if times.lasting else f"full {times.ago(at_ms)} ({format_time(at_ms)})"


def rough(full_ms: int, now_ms: int) -> int:
    """The time of a forecast as it is told, the earlier one: a mean of minutes or hours shows no second. A time minutes away is told in
    steps of ten seconds: whole minutes would halve what is left."""
    left_ms = full_ms - now_ms
    unit_ms = next((unit for least, unit in _ROUGH_UNITS if left_ms >= least), 1)
    return now_ms + left_ms // unit_ms * unit_ms


def _leftovers(kind: str, held: list[LeftoverFiles]) -> str:
    size = format_size(sum(each.taken for each in held))
    some = format_list([format_name(each.path, 300) for each in held], 3)
    if kind == "unnamed":
        return f"{kind}: {format_count(len(held), 'log')} without partition.metadata: {some}"
    if kind == "deleted_open":
        return f"{kind}: {size} of deleted files of log dirs that a process holds open: {some}"
    state = {"stray_only": "with perhaps the only copy of live topics' records", "stray_unknown": "that no broker serves"}
    return f"{kind}: {size} in {format_count(len(held), 'place')} {state.get(kind, 'that should be gone')}: {some}"


def soonest_ms(each: LogDirUse) -> int:
    """The earliest time at which a log dir may be full, -1 if none is known."""
    return each.full_earliest_ms if each.full_earliest_ms >= 0 else each.full_ms
