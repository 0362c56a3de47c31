"""``segtail topics``: show what each topic costs and who uses it; which are not used, and which have many partitions for their bytes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from streaming.broker.protocol.advice_json import SAMPLE_BYTES
from streaming.broker.protocol.listing_json import ALL_ROWS, NO, TOPICS_PATH, UNKNOWN, YES, TopicPage, TopicRow
from streaming.common.settings import Settings
from streaming.common.units import format_count, format_duration, format_list, format_name, format_size, format_time
from streaming.errors import UsageError
from streaming.pages.listings.declared_lists import TOPICS
from streaming.pages.listings.listing import Listing, Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.lists import Answer, ListRequest, ListSource, print_list, with_list
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND
from streaming.terminal.cli.values import Duration, Size

_FIRST = (
    *("topic", "topics", "replica_bytes", "growth_day", "used", "quiet_ms", "last_append_ms", "last_commit_ms", "readers", "partitions"),
    *("partition_bytes", "size_skew", "codecs", "batch_bytes", "advised"),
)

_USES = Listing(
    name="uses of topics",
    noun="topic",
    row=TopicRow,
    heads={name: next(each.heading for each in TOPICS.fields if each.name == name) for name in _FIRST},
    cells=TOPICS.cells,
)
"""What each topic costs, and who uses it: what people who look for that read first."""

_NAMED, _ADVISED = 5, 50

_NO_PROOF = "No commits are not no readers: who keeps offsets elsewhere, or commits none, leaves no trace here."


@click.command("topics", epilog=EXIT_STATUS)
@with_list("server_properties", "read_rate")
@click.option("--unused", type=Duration(), metavar="TIME", help="Only topics that were not used for so long, such as 30d.")
@click.option(
    "--tiny",
    type=Size(),
    is_flag=False,
    flag_value="1MiB",
    metavar="[SIZE]",
    help="Only topics of several partitions that have less than this on average.  [default: 1MiB]",
)
@click.option("--by-prefix", metavar="SEPARATOR", help="Sums of the topics whose names are the same up to the first of these.")
@click.option("--internal", is_flag=True, help="Kafka's own topics, too.")
@click.option("--advise", "advised", is_flag=True, help=f"A column with what `segtail advise` says of the {_ADVISED} largest of them.")
@click.option(
    "--sort",
    type=click.Choice(TOPICS.sortable),
    metavar="FIELD",
    default="replica_bytes",
    show_default=True,
    help=f"The field to sort by, as in JSON: {', '.join(TOPICS.sortable)}.",
)
def command(
    settings: Settings,
    wanted: ListRequest,
    unused: int | None,
    tiny: int | None,
    by_prefix: str | None,
    internal: bool,
    advised: bool,
    sort: str,
) -> int:
    """Show what each topic costs, when a client last appended to it or committed in it, and who reads it.

    It reads all commits, and the segments of the topics: their names, sizes and times, and the batches of active segments. Or it asks a
    running job. A plus sign marks bytes that are a lower bound: some replicas are not seen. Used is what was used within 30 days, or within
    the time of --unused; not yet, what was made within it and was never used.

    With --unused it lists topics that no client has appended to or committed in for so long, and that no group in use reads. What was not
    read for as long as that is not known: partitions that are not here, and commits that may have expired (offsets.retention.minutes)
    where the coordinators' logs are compacted.
    """
    if advised and (wanted.job is not None or by_prefix is not None):
        raise UsageError("--advise is about topics of log dirs: leave out --by-prefix, and name log dirs instead of a job")
    source = ListSource(wanted, None if wanted.job is not None else _read(settings, wanted), settings.log_dirs)
    of: dict[str, Any] = {"sort": sort, "internal": str(internal or bool(wanted.names)).lower()}
    of |= {} if unused is None else {"unused_ms": unused, "used": f"{NO},{UNKNOWN}"}
    of |= {} if tiny is None else {"tiny_bytes": tiny, "tiny": f"{YES},{UNKNOWN}"}
    every = source.page(TOPICS_PATH, TopicPage, ALL_ROWS, **of)
    source.check_names(TOPICS_PATH, TopicPage, every.doubts)
    of_use = unused is not None
    reasons = {row.topic: why for row in every.rows if (why := _why_not_known(row, of_use=of_use, of_size=tiny is not None))}
    found = replace(every, rows=[row for row in every.rows if row.topic not in reasons])
    unknown = [*_not_known(reasons)]
    page = every if wanted.form == "json" and by_prefix is None else found
    if by_prefix is not None:
        of |= {} if unused is None else {"used": NO}
        of |= {} if tiny is None else {"tiny": YES}
        page = replace(source.page(TOPICS_PATH, TopicPage, ALL_ROWS, **of, by_prefix=by_prefix), doubts=every.doubts)
    if advised:
        page = replace(page, rows=_advised(page.rows, settings))
    if wanted.form == "json":
        page = replace(page, doubts=[*page.doubts, *unknown])
    print_list(page, wanted, [*_lines(page, found.rows, unused, tiny, wanted.width), *unknown], "")
    if (of_use or tiny is not None) and found.rows:
        return FOUND
    return NOT_KNOWN if every.doubts or unknown else NOTHING_FOUND


def _read(settings: Settings, wanted: ListRequest) -> Answer:
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.everything import read_topics

    with ProgressLine.on_stderr() as progress:
        return read_topics(open_below(settings.log_dirs), wanted.names, settings, wanted.at, progress.add).answer


def _why_not_known(row: TopicRow, *, of_use: bool, of_size: bool) -> str:
    """Why it is not known whether a topic is one that is asked for, "" if it is."""
    if of_use and row.used == UNKNOWN:
        return row.used_why
    return "not all of its partitions are seen" if of_size and row.tiny == UNKNOWN else ""


def _not_known(reasons: Mapping[str, str]) -> Iterator[str]:
    """A sentence without a period for each reason."""
    for why in dict.fromkeys(reasons.values()):
        topics = [format_name(topic, 249) for topic, of_topic in reasons.items() if of_topic == why]
        yield f"Of {format_count(len(topics), 'topic')} it is not known: {format_list(topics, _NAMED)}: {why}"


def _advised(rows: Sequence[TopicRow], settings: Settings) -> list[TopicRow]:
    """The rows, those of the largest topics with advice where there is any."""
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.advice import Adviser

    names = [row.topic for row in sorted(rows, key=lambda row: -row.replica_bytes)[:_ADVISED]]
    with ProgressLine.on_stderr() as progress:
        adviser = Adviser(open_below(settings.log_dirs), settings, SAMPLE_BYTES, progress.add)
        advice = [adviser.advise(name) for name in names if name in adviser.there]
    told = {row.topic: f"{row.setting}: {row.saving}" for row in advice if row.setting}
    return [replace(row, advised=told.get(row.topic, "")) for row in rows]


def _lines(page: TopicPage, found: Sequence[TopicRow], unused: int | None, tiny: int | None, width: int | None) -> Iterator[str]:
    if page.rows:
        yield from text_table(_USES, page.rows, Times(page.at_ms), width)
        yield ""
    sizes = [row.replica_bytes for row in found if row.replica_bytes >= 0]
    more = "+" if any(row.replica_more for row in found) or len(sizes) < len(found) else ""
    partitions = format_count(sum(row.partitions for row in found), "partition")
    yield f"{format_count(len(found), 'topic')}{_chosen(unused, tiny)}, {partitions}, {format_size(sum(sizes))}{more} on all replicas"
    if unused is not None:
        yield f"{_seen(page.commits_from_ms)}{_NO_PROOF}"


def _chosen(unused: int | None, tiny: int | None) -> str:
    words = [f"unused for {format_duration(unused / 1000)}"] if unused is not None else []
    words += [f"with less than {format_size(tiny)} a partition"] if tiny is not None else []
    return f" {' and '.join(words)}" if words else ""


def _seen(from_ms: int) -> str:
    if from_ms <= 0:
        return "" if from_ms else "All commits that there ever were are seen. "
    return f"All commits from {format_time(from_ms)} on are seen, but those that were deleted by hand. "
