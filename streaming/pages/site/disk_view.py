"""The view of disks: when each log dir is full, and what fills them, by topic, partition, log dir or kind of files."""

from dataclasses import dataclass

from streaming.broker.protocol.disk_json import BY, DISK_PATH, FULL, DiskAnswer, LogDirUse
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_count
from streaming.pages.listings.disk_list import DISK, LOG_DIRS
from streaming.pages.site.page_links import DISKS, Query, link
from streaming.pages.site.page_tables import FormChoice, PageTable, columns_of, draw, paging
from streaming.pages.site.page_views import Filter, PageView

PARAMETERS = ("by", "filter", "offset")

_MOST_DIRS = 100
_WORDS = {"topic": "by topic", "partition": "by partition", "dir": "by log dir", "kind": "by kind of files"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DisksView(PageView):
    """What disks hold. ``choices``: what a row may be about."""

    dirs: PageTable
    more: str
    filter: Filter
    choices: tuple[FormChoice, ...]
    table: PageTable


def disks_view(answer: DiskAnswer, query: Query, status: Status) -> DisksView:
    """The view of disks."""
    dirs = sorted((each for each in answer.log_dirs if _holds(each, query.filter)), key=_soonest_first)
    omitted = len(dirs) - _MOST_DIRS
    return DisksView(
        title="Disks",
        here=DISKS,
        status=status,
        json=link(DISK_PATH, query.given(*PARAMETERS)),
        dirs=draw(
            "dirs",
            "Log dirs",
            columns_of(LOG_DIRS.page_columns),
            dirs[:_MOST_DIRS],
            answer.at_ms,
            empty="No log dir matches." if answer.log_dirs else "No agent has told of a log dir yet.",
        ),
        more=f"{format_count(omitted, 'more log dir')} not listed: filter by path or broker." if omitted > 0 else "",
        filter=Filter(path=DISKS, text=query.filter, label="Find on disks", parameters=tuple(query.given("by").items())),
        choices=tuple(
            FormChoice(value=link(DISKS, {**query.given("filter"), "by": each}), text=_WORDS[each], chosen=each == answer.by) for each in BY
        ),
        table=draw(
            "rows",
            f"What fills them, {_WORDS[answer.by]}; segments by their length",
            columns_of(DISK[answer.by].page_columns),
            answer.rows,
            answer.at_ms,
            empty="Nothing matches the filter." if answer.total else "Nothing is known of what fills them.",
            paging=paging(
                DISKS,
                query.given("by", "filter"),
                offset=answer.offset,
                rows=len(answer.rows),
                matched=answer.matched,
                total=answer.total,
            ),
        ),
    )


def _holds(log_dir: LogDirUse, text: str) -> bool:
    return text.casefold() in f"broker {log_dir.broker} {log_dir.log_dir}".casefold()


def _soonest_first(log_dir: LogDirUse) -> tuple[bool, bool, int, int, str]:
    """What cannot be read, then what is full first."""
    return log_dir.up, log_dir.outlook != FULL, log_dir.full_ms, log_dir.broker, log_dir.log_dir
