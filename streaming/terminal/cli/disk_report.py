"""The text report of ``segtail disk``: the verdict, each log dir, the rows, what to do, and how it is reckoned."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.disk_json import BY, FULL, KIND_WORDS, NEVER, UNKNOWN, DiskAnswer, LogDirUse
from streaming.cluster.usage.disk_answer import Finding, full_sentence, rough, soonest_ms, why_down
from streaming.common.settings import Settings
from streaming.common.units import capitalized, format_count, format_duration, format_list, format_name, format_size, format_time
from streaming.pages.listings.declared_lists import DISK
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.rules.space_outlook import WINDOW_MS
from streaming.terminal.cli.assumed_limits import assumed_line
from streaming.terminal.cli.lists import AT_START, away_lines

_QUIET_MS = 60_000
"""A broker that runs writes its checkpoint every 5 seconds."""

_DAY_S = 86_400
_YET = "nobody can tell yet when it is full"

RECKONED = (
    "Growth is what the last day has appended (or the time since the oldest segment, if that is less), by the times of the segments. "
    "What the next check frees is on the disk until the broker makes that check, and for file.delete.delay.ms (a minute) after it."
)


def report(answer: DiskAnswer, wrong: Sequence[Finding], width: int | None = None, settings: Settings | None = None) -> Iterator[str]:
    """The lines of the report; its table fits ``width``. ``settings``: as in `assumed_line`."""
    yield verdict(answer, wrong)
    yield ""
    for number, each in enumerate(answer.log_dirs):
        yield from _log_dir(answer, each, answer.in_force[number] if answer.in_force else None)
    yield from answer.beside
    yield ""
    yield from _rows(answer, width, settings)
    if len(answer.rows) < answer.matched:
        yield f"{answer.matched - len(answer.rows):,} more: --limit 0 shows all"
    for finding in wrong:
        yield ""
        yield f"{finding.what}."
        yield f"  {finding.advice}"
    if any(each.growth_day >= 0 for each in answer.log_dirs):
        yield ""
        yield RECKONED
    frees = any(each.frees_now > 0 for each in answer.log_dirs)
    for line in away_lines(answer.away, answer.at_ms, AT_START["disk"] if frees else ""):
        yield ""
        yield line


def verdict(answer: DiskAnswer, wrong: Sequence[Finding]) -> str:
    """The first line: what is most important."""
    if wrong:
        return "; ".join(each.what for each in wrong[:2]) + (f"; and {format_count(len(wrong) - 2, 'other problem')}" if wrong[2:] else "")
    soonest = min((each for each in answer.log_dirs if soonest_ms(each) >= 0), key=soonest_ms, default=None)
    if soonest is not None:
        return capitalized(full_sentence(soonest, answer.at_ms))
    if all(each.outlook == NEVER for each in answer.log_dirs):
        known = not (answer.doubts or answer.beside or any(each.growth_unknown for each in answer.log_dirs))
        far = "No" if known else "As far as is known here, no"
        return f"{far} log dir is full within a year, if it grows as it does"
    unread = [format_name(each.log_dir, 300) for each in answer.log_dirs if not each.up]
    if unread:
        return f"Whether every log dir has room is not known: {format_list(unread, 3)} cannot be read"
    unread = [format_name(each.log_dir, 300) for each in answer.log_dirs if each.outlook == UNKNOWN and each.growth_unread]
    if unread:
        return f"Whether every log dir has room is not known: not all logs in {format_list(unread, 3)} can be read"
    return "Whether every log dir has room is not known: no log there shows yet how it grows"


def _log_dir(answer: DiskAnswer, each: LogDirUse, in_force: LogDirUse | None) -> Iterator[str]:
    if not each.up:
        yield why_down(each.log_dir, each.problem)
        return
    name = format_name(each.log_dir, 300)
    capacity = f" of {format_size(each.capacity)}" if each.capacity >= 0 else ""
    free = f"; {format_size(each.free)}{capacity} free" if each.free >= 0 else ""
    yield f"{name}, broker {each.broker}: {format_size(each.taken)} in {format_count(each.replicas, 'replica')}{free}"
    if in_force is not None:
        yield f"  as it is configured: {outlook(in_force, answer.at_ms)}"
        yield f"  with {', '.join(answer.what_if)}: {outlook(each, answer.at_ms)}"
        yield f"  the next check would free {format_size(each.frees_now)} instead of {format_size(in_force.frees_now)}"
    else:
        yield f"  {outlook(each, answer.at_ms)}"
    kinds = sorted((kind for kind in each.kinds if kind.taken), key=lambda kind: -kind.taken)
    if kinds:
        yield "  " + ", ".join(f"{KIND_WORDS.get(kind.kind, kind.kind)} {format_size(kind.taken)}" for kind in kinds)
    if each.apparent >= 0 and abs(each.apparent - each.taken) > each.taken // 10:
        yield f"  the files are {format_size(each.apparent)} long: preallocated files have holes, and small files take a whole block"
    if 0 <= each.checkpoint_ms < answer.at_ms - _QUIET_MS and each.broker not in {away.broker for away in answer.away}:
        yield (
            f"  no broker has written here for {format_duration((answer.at_ms - each.checkpoint_ms) / 1000)}: until it runs, nothing is "
            "appended and nothing deleted"
        )
    if each.moving:
        yield (
            f"  {format_count(each.moving, 'replica')} {'moves' if each.moving == 1 else 'move'} to another log dir: until that is over, "
            "nothing of what moves is deleted or compacted"
        )
    yield from _restart(answer, each)
    if each.growth_unread:
        them = "its log" if each.growth_unread == 1 else "their logs"
        yield f"  the growth of {format_count(each.growth_unread, 'replica')} is not known: {them} cannot be read"
    if young := each.growth_unknown - each.growth_unread:
        yield f"  the growth of {format_count(young, 'replica')} is not known: all data there is only minutes old, or it is silent"


def outlook(each: LogDirUse, now_ms: int) -> str:
    """When a log dir is full, in a sentence."""
    parts = []
    if each.growth_day >= 0:
        over = (
            f" (its fastest log over the last {format_duration(each.growth_over_ms / 1000)})"
            if 0 <= each.growth_over_ms < WINDOW_MS
            else ""
        )
        again = f", of which retention deletes {format_size(each.again_day)} again within the day" if each.again_day > 0 else ""
        parts.append(f"it grows by {format_size(each.growth_day)} a day{over}{again}")
        parts += [f"others on its disk take {format_size(each.others_day)} a day"] if each.others_day > 0 else []
        parts.append(f"retention frees {format_size(each.frees_day)} of what is there within a day")
    if each.pace_over_ms >= 0:
        second = format_size(round(each.pace_day / _DAY_S))
        parts.append(f"its disk fills by {second} a second, as in the last {format_duration(each.pace_over_ms / 1000)}")
    because = f": {', and '.join(parts)}" if parts else ""
    if each.outlook == FULL:
        when = "full now" if each.full_ms <= now_ms else f"full in {_in(each.full_ms, now_ms)}"
    else:
        unknown = "nobody can tell when it is full: not all of its logs can be read" if each.growth_unread else _YET
        when = "not full within a year" if each.outlook == NEVER else unknown
    if each.full_earliest_ms >= 0:
        when += f", or in {_in(each.full_earliest_ms, now_ms)} if it goes on to fill as now"
    if each.full_uncleaned_ms not in (-1, each.full_ms):
        because += f"; if compaction frees nothing, full in {_in(each.full_uncleaned_ms, now_ms)}"
    return when + because


def _in(at_ms: int, now_ms: int) -> str:
    at_ms = rough(at_ms, now_ms)
    return f"{format_duration((at_ms - now_ms) / 1000)} ({format_time(at_ms)})"


def _restart(answer: DiskAnswer, each: LogDirUse) -> Iterator[str]:
    """What a start of its broker reads."""
    if each.recovering_bytes >= 0:
        logs = f": {format_list([format_name(name, 300) for name in each.recovering], 3)}" if each.recovering else ""
        until = f", until about {format_time(each.recovered_ms)}" if each.recovered_ms >= 0 else ""
        left = f"{format_size(each.recovering_bytes)} in {format_count(each.recovering_logs, 'log')}"
        yield f"  its broker is starting after a crash: {left} left to read{until}{logs}"
    elif each.recovery_bytes > 0:
        threads = f", with {format_count(each.recovery_threads, 'thread')}" if each.recovery_threads > 0 else ""
        takes = f", for about {format_duration(each.recovery_seconds)}" if each.recovery_seconds >= 0 else ""
        read = f"{format_size(each.recovery_bytes)} in {format_count(each.recovery_logs, 'log')}"
        yield f"  a start after a crash reads {read}{threads}{takes}; up to {format_size(each.not_fsynced_bytes)} are not flushed yet"
    elif each.recovery_bytes == 0 and each.replicas:
        yield f"  {'its broker was shut down cleanly: the next start' if each.clean else 'a start after a crash'} reads no log"


def _rows(answer: DiskAnswer, width: int | None, settings: Settings | None) -> Iterator[str]:
    yield from text_table(DISK[answer.by], answer.rows, Times(answer.at_ms), width)
    if answer.by == BY[0] and (assumed := [format_name(row.topic) for row in answer.rows if row.limits_assumed]):
        yield assumed_line(assumed, settings)
