"""The list of log dirs: how full each is, and when it has no room."""

from streaming.broker.protocol.disk_json import FULL, NEVER, LogDirUse
from streaming.common.formatting import NONE, format_name, format_size
from streaming.pages.listings.list_cells import Cell, Times, Unit, size
from streaming.pages.listings.listing import Field, Listing


def _full(row: LogDirUse, times: Times) -> Cell:
    if not row.up:
        return Cell(text="cannot be read", note=row.problem)
    if row.outlook == FULL:
        return Cell(text=times.deadline(row.full_ms), at_ms=row.full_ms)
    if row.outlook == NEVER:
        return Cell(text="not within a year")
    return Cell(text=NONE, note="not all of its logs can be read" if row.growth_unread else "its growth is not known")


def _growth(row: LogDirUse, _: Times) -> Cell:
    notes = [f"without {row.growth_unknown:,} replicas"] if row.growth_unknown and row.growth_day >= 0 else []
    notes += [f"others on its disk take {format_size(row.others_day)} a day"] if row.others_day > 0 else []
    return Cell(text=size(row.growth_day), note=", ".join(notes))


LOG_DIRS = Listing(
    name="log dirs",
    noun="log dir",
    row=LogDirUse,
    fields=(
        Field(name="broker", unit=Unit.ID, meaning="whose it is", heading="Broker", rank=3),
        Field(
            name="log_dir",
            unit=Unit.NAME,
            meaning="which",
            heading="Log dir",
            rank=1,
            least=16,
            cell=lambda row, _: Cell(text=format_name(row.log_dir, 300)),
        ),
        Field(name="up", unit=Unit.FLAG, meaning="it can be read"),
        Field(name="problem", unit=Unit.SENTENCE, meaning="why it cannot"),
        Field(name="file_system", unit=Unit.ID, meaning="log dirs with the same number share both, and are full together"),
        Field(
            name="taken",
            unit=Unit.BYTES,
            meaning="by all files on the disk; of segments their length where a job or the page of log dirs tells it",
            heading="On disk",
            rank=6,
        ),
        Field(name="apparent", unit=Unit.BYTES, meaning="the length of all files"),
        Field(name="kinds", unit=Unit.MESSAGE, meaning="list of `KindUse`, of each kind of files"),
        Field(name="replicas", unit=Unit.COUNT, meaning="live ones, without that of the metadata log", heading="Replicas", rank=8),
        Field(name="free", unit=Unit.BYTES, meaning="of its file system", heading="Free", rank=4),
        Field(name="capacity", unit=Unit.BYTES, meaning="of its file system", heading="Capacity", rank=7),
        Field(name="growth_day", unit=Unit.BYTES, meaning="bytes a day", heading="Growth a day", rank=5, cell=_growth),
        Field(name="growth_over_ms", unit=Unit.DURATION, meaning="over how long that is a mean"),
        Field(name="others_day", unit=Unit.BYTES, meaning="what else on its file system took a day, as a job has seen it for an hour"),
        Field(name="growth_unknown", unit=Unit.COUNT, meaning="of how many replicas it is not known"),
        Field(name="growth_unread", unit=Unit.COUNT, meaning="of how many of these the log cannot be read"),
        Field(name="frees_now", unit=Unit.BYTES, meaning="what the next check deletes", heading="Next check frees", rank=9),
        Field(name="frees_day", unit=Unit.BYTES, meaning="what is free in 24 hours"),
        Field(name="next_ms", unit=Unit.MOMENT, meaning="when the next space is free"),
        Field(name="next_start_of", unit=Unit.ID, meaning="its broker, if that has no process and has to be started before that"),
        Field(name="moving", unit=Unit.COUNT, meaning="how many replicas move to another log dir: nothing of them is deleted meanwhile"),
        Field(name="outlook", unit=Unit.WORD, meaning="`full`, `never` (not within a year), `unknown`", heading="Full", rank=2, cell=_full),
        Field(name="full_ms", unit=Unit.MOMENT, meaning="when it is full"),
        Field(name="full_uncleaned_ms", unit=Unit.MOMENT, meaning="when, if compaction frees nothing"),
        Field(name="checkpoint_ms", unit=Unit.MOMENT, meaning="when its broker last wrote here", heading="Last checkpoint", rank=10),
        Field(name="unread", unit=Unit.COUNT, meaning="how many files could not be read"),
        Field(name="unread_of", unit=Unit.NAMES, meaning="some of them"),
        Field(name="recovery_logs", unit=Unit.COUNT, meaning="how many logs a start after a crash reads; 0 after a clean shutdown"),
        Field(name="recovery_bytes", unit=Unit.BYTES, meaning="what it reads of them"),
        Field(
            name="recovery_seconds",
            unit=Unit.RATIO,
            meaning="how long that takes, by the last recovery that its agent saw",
        ),
        Field(name="recovery_threads", unit=Unit.COUNT, meaning="`num.recovery.threads.per.data.dir`"),
        Field(name="clean", unit=Unit.FLAG, meaning="its broker was shut down in an orderly way, and has not started since"),
        Field(name="not_fsynced_bytes", unit=Unit.BYTES, meaning="the most that may not be on disk"),
        Field(name="recovering_logs", unit=Unit.COUNT, meaning="how many are left of a recovery that is going on"),
        Field(name="recovering_bytes", unit=Unit.BYTES, meaning="what is left of it"),
        Field(name="recovering", unit=Unit.NAMES, meaning="some of the logs that it reads"),
        Field(name="recovered_ms", unit=Unit.MOMENT, meaning="when it ends"),
    ),
)
