"""``segtail advise``: say which codec, batch size and linger would make topics smaller, and by how much."""

from collections.abc import Iterator, Sequence
from functools import partial

import click

from streaming.broker.protocol.advice_json import ADVISED, SAMPLE_BYTES, UNKNOWN, AdvicePage, AdviceRow, AdvisedSetting
from streaming.common.settings import Settings
from streaming.common.units import capitalized, format_count, format_name, format_size, format_table
from streaming.errors import UsageError
from streaming.pages.listings.listing import Listing, Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.lists import TOPIC, ListRequest, check_topics, print_page, topics_here, without_paths
from streaming.terminal.cli.options import log_once, with_settings
from streaming.terminal.cli.output_options import width_of, with_form
from streaming.terminal.cli.printing import echo_lines
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND, nearby
from streaming.terminal.cli.values import Size

_LEAST_BYTES = 64 << 10
_ADVICE = Listing(name="advice", noun="topic", row=AdviceRow)


@click.command("advise", epilog=EXIT_STATUS)
@click.argument("names", metavar="[PATH|TOPIC]...", nargs=-1, callback=partial(without_paths, TOPIC))
@with_settings("log_dirs", "server_properties", "read_rate")
@with_form
@click.option("--topic", "named", multiple=True, metavar="TOPIC", help="Only this topic, with all settings. May be repeated.")
@click.option("--sample", "most", type=Size(), default=f"{SAMPLE_BYTES >> 20}MiB", show_default=True, help="So much is read of each topic.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N", help="The N largest topics.")
def command(settings: Settings, names: tuple[str, ...], named: tuple[str, ...], form: str, most: int, limit: int) -> int:
    """Say which codec, batch.size and linger.ms would make topics smaller on disk and on the wire, and by how much.

    It reads windows of the last segments, opens their records in memory, replays them through a Java producer's accumulator, and compresses
    them again. Nothing of a record is shown, kept or sent. Found is what is advised.
    """
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.advice import advise

    log_once()
    if most < _LEAST_BYTES:
        raise UsageError(f"--sample {format_size(most)} is too little to say anything: give {format_size(_LEAST_BYTES)} or more")
    if not settings.log_dirs:
        settings, _ = nearby(settings, of_files=True)
    wanted = ListRequest(noun=TOPIC, names=tuple(dict.fromkeys((*names, *named))), text="", at=None, job=None, form=form)
    log_dirs = open_below(settings.log_dirs)
    with ProgressLine.on_stderr() as progress:
        every = bool(wanted.names)
        page, there = advise(log_dirs, wanted.names, settings, wanted.now_ms, most=most, largest=limit, every=every, progress=progress.add)
    check_topics(wanted, there, page.doubts, lambda: topics_here(settings.log_dirs))
    if form == "json":
        print_page(page)
    else:
        echo_lines(_lines(page, width_of(form), every=every), width_of(form))
    if any(row.verdict == ADVISED for row in page.rows):
        return FOUND
    return NOT_KNOWN if page.doubts or any(row.verdict == UNKNOWN for row in page.rows) else NOTHING_FOUND


def _lines(page: AdvicePage, width: int | None, *, every: bool) -> Iterator[str]:
    if page.rows:
        yield from text_table(_ADVICE, page.rows, Times(page.at_ms), width)
        yield ""
    for row in page.rows:
        name = format_name(row.topic, 249)
        if row.why or row.setting:  # a table cuts what is advised where it has no room
            yield f"{name}: {row.why or row.setting}"
        if every:
            yield from _detail(row)
    read, whole = (format_size(sum(max(0, getattr(row, each)) for row in page.rows)) for each in ("sampled_bytes", "segment_bytes"))
    yield f"{format_count(len(page.rows), 'topic')} by {read} of {whole} in their last segments, as of Java's producer; ± is the sample's"
    yield from (f"- {doubt}" for doubt in page.doubts)


def _detail(row: AdviceRow) -> Iterator[str]:
    """The grid of settings, and what the prediction depends on."""
    codecs = list(dict.fromkeys(each.codec for each in row.settings))
    depths: dict[tuple[int, int], list[AdvisedSetting]] = {}
    for each in row.settings:
        depths.setdefault((each.linger_ms, each.batch_size), []).append(each)
    if depths:
        yield f"Saved of {format_name(row.topic, 249)}, in percent ± error, and records a batch of {codecs[-1]}:"
        heads = ["linger.ms", "batch.size", *codecs, "Records"]
        yield from format_table([heads, *(_row(linger, size, some) for (linger, size), some in depths.items())], heads)
    for each in row.advised:
        if each.linger_ms > 0:
            yield f"With linger.ms={each.linger_ms} a record waits {each.linger_ms} ms at most for others of its partition"
        if each.batch_size > 0:
            size = -(-round(each.batch_size * each.ratio) // 1000) * 1000
            yield f"In librdkafka, which counts batch.size before compression, batch.size={size} is the same"
    yield from (f"- {capitalized(note)}" for note in row.notes)


def _row(linger: int, size: int, some: Sequence[AdvisedSetting]) -> list[str]:
    errors = [f" ± {each.error_percent:.1f}" if each.error_percent >= 0 else "" for each in some]
    return [
        "as now" if size < 0 else "not known" if linger < 0 else str(linger),
        "as now" if size < 0 else str(size),
        *(f"{each.saving_percent:z.1f}{error}" for each, error in zip(some, errors, strict=True)),
        f"{some[-1].batch_records:,.0f}",
    ]
