"""The numbers of a good day, each with what it is about: one row, which the page draws as figures."""

from streaming.broker.protocol.numbers_json import ClusterNumbers
from streaming.common.formatting import NONE, format_count, format_name
from streaming.pages.listings.list_cells import Cell, Times, Unit, after_start, count, place, rate, size
from streaming.pages.listings.listing import Field, Listing

FIGURES = 6
"""So many of the columns are numbers of now; the others are about what comes next."""


_LEFT = "the milliseconds that were left until then in each minute of the last hour, the oldest first"


def _without(missing: int) -> str:
    return f"{format_count(missing, 'partition')} not counted" if missing else ""


def _bytes(row: ClusterNumbers, _: Times) -> Cell:
    text = NONE if row.bytes_rate < 0 else f"{size(row.bytes_rate)}/s"
    return Cell(text=text, note=row.rates_why or _without(row.rates_missing), curve=tuple(row.bytes_rates))


def _records(row: ClusterNumbers, _: Times) -> Cell:
    known = row.records_rate >= 0
    note = _without(row.rates_missing) if known else row.rates_why or "no count of records shows it"
    return Cell(text=f"{rate(row.records_rate)}/s" if known else NONE, note=note, curve=tuple(row.records_rates))


def _lag(row: ClusterNumbers, _: Times) -> Cell:
    if row.lag_why:
        return Cell(text=NONE, note=row.lag_why, curve=tuple(row.lag_hour))
    return Cell(
        text=count(row.lag_records), note=f"group {format_name(row.lag_group, 255)}", group=row.lag_group, curve=tuple(row.lag_hour)
    )


def _loss(row: ClusterNumbers, times: Times) -> Cell:
    hour = tuple(row.loss_left_hour)
    if row.loss_why:
        return Cell(text=NONE, note=row.loss_why, curve=hour)
    due = 0 <= row.loss_ms <= times.now_ms
    text = after_start(row.loss_start_of) if row.loss_start_of >= 0 else "next check" if due else times.of(row.loss_ms)
    text += "?" if row.loss_assumed else ""
    return Cell(text=text, note=f"group {format_name(row.loss_group, 255)}", group=row.loss_group, at_ms=row.loss_ms, curve=hour)


def _full(row: ClusterNumbers, times: Times) -> Cell:
    hour = tuple(row.full_left_hour)
    if row.full_why:
        return Cell(text=NONE, note=row.full_why, curve=hour)
    note = f"broker {row.full_broker}, {format_name(row.full_log_dir, 300)}"
    return Cell(text=times.deadline(row.full_ms), note=note, log_dir=row.full_log_dir, at_ms=row.full_ms, curve=hour)


def _in_sync(row: ClusterNumbers, _: Times) -> Cell:
    return Cell(text=count(row.out_of_sync), note=row.sync_why or _without(row.sync_missing), curve=tuple(row.out_of_sync_hour))


def _hanging(row: ClusterNumbers, _: Times) -> Cell:
    unknown = f"it cannot be told of {format_count(row.unjudged, 'open transaction')}" if row.unjudged else ""
    return Cell(text="none" if row.hanging == 0 and not row.unjudged else NONE if row.hanging == 0 else count(row.hanging), note=unknown)


def _oldest(row: ClusterNumbers, times: Times) -> Cell:
    if row.oldest_ms < 0:
        return Cell(text="none is open")
    where = row.oldest_topic, row.oldest_partition
    return Cell(text=times.of(row.oldest_ms), note=place(*where), partition=where, at_ms=row.oldest_ms)


CLUSTER_NUMBERS = Listing(
    name="numbers",
    noun="cluster",
    row=ClusterNumbers,
    fields=(
        Field(name="at_ms", unit=Unit.MOMENT, meaning="as of when"),
        Field(
            name="bytes_rate",
            unit=Unit.BYTES_RATE,
            meaning="bytes appended a second, to the partitions of which it is known",
            heading="Appended",
            rank=1,
            cell=_bytes,
        ),
        Field(name="records_rate", unit=Unit.RATE, meaning="records, likewise", heading="Records", rank=2, cell=_records),
        Field(name="rates_missing", unit=Unit.COUNT, meaning="of so many partitions it is not known"),
        Field(name="rates_why", unit=Unit.SENTENCE, meaning="why it is known of none"),
        Field(name="bytes_rates", unit=Unit.CURVE, meaning="the last hour, a number a minute, the oldest first"),
        Field(name="records_rates", unit=Unit.CURVE, meaning="likewise"),
        Field(
            name="lag_records",
            unit=Unit.COUNT,
            meaning="the largest lag of a consumer group that somebody uses: in records, or in offsets where these are not known",
            heading="Largest lag",
            rank=3,
            cell=_lag,
        ),
        Field(name="lag_group", unit=Unit.NAME, meaning="which group that is"),
        Field(name="lag_why", unit=Unit.SENTENCE, meaning="why it is not known"),
        Field(name="lag_hour", unit=Unit.CURVE, meaning="the largest of the last hour, a number a minute, the oldest first"),
        Field(
            name="loss_ms",
            unit=Unit.MOMENT,
            meaning="when retention may first delete what such a group has not read",
            heading="Next loss",
            rank=4,
            cell=_loss,
        ),
        Field(
            name="loss_start_of",
            unit=Unit.ID,
            meaning="where no time is known: the broker, without a process, that has to be started before such a group loses anything",
        ),
        Field(name="loss_group", unit=Unit.NAME, meaning="which group that is"),
        Field(name="loss_assumed", unit=Unit.FLAG, meaning="its limits are Kafka's defaults, because the real ones are not known"),
        Field(name="loss_why", unit=Unit.SENTENCE, meaning="why there is none"),
        Field(name="loss_left_hour", unit=Unit.CURVE, meaning=_LEFT),
        Field(name="full_ms", unit=Unit.MOMENT, meaning="when the first log dir is full", heading="First disk full", rank=5, cell=_full),
        Field(name="full_broker", unit=Unit.ID, meaning="whose it is"),
        Field(name="full_log_dir", unit=Unit.NAME, meaning="its path"),
        Field(name="full_why", unit=Unit.SENTENCE, meaning="why there is none"),
        Field(name="full_left_hour", unit=Unit.CURVE, meaning=_LEFT),
        Field(
            name="out_of_sync",
            unit=Unit.COUNT,
            meaning="replicas that are not in sync, of the partitions of which it is known",
            heading="Replicas out of sync",
            rank=6,
            cell=_in_sync,
        ),
        Field(name="sync_missing", unit=Unit.COUNT, meaning="of so many partitions it is not known"),
        Field(name="sync_why", unit=Unit.SENTENCE, meaning="why it is known of none"),
        Field(name="out_of_sync_hour", unit=Unit.CURVE, meaning="the last hour, a number a minute, the oldest first"),
        Field(
            name="hanging",
            unit=Unit.COUNT,
            meaning="transactions that no coordinator will end",
            heading="Hanging transactions",
            rank=7,
            cell=_hanging,
        ),
        Field(name="unjudged", unit=Unit.COUNT, meaning="open transactions of which that cannot be told"),
        Field(
            name="oldest_ms",
            unit=Unit.MOMENT,
            meaning="since when the oldest open transaction is open, `null` if none is",
            heading="Oldest open transaction",
            rank=8,
            cell=_oldest,
        ),
        Field(name="oldest_topic", unit=Unit.NAME, meaning="where it is open"),
        Field(name="oldest_partition", unit=Unit.ID, meaning="likewise"),
    ),
)
