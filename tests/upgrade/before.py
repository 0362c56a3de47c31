"""What agents and jobs of the version before this one have left behind (tests/data/upgrade), and growth for the logs in it."""

import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streaming.event_row import EVENTS
from streaming.protocol.consumer_messages import Plan
from streaming.protocol.status_messages import Status
from streaming.simulator.batch_writer import Batch, encode
from tests import unpacking

_LISTED = ("segments", "local_log_start_offset", "oldest_timestamp", "active_first_timestamp", "active_created_ms")

DATA = Path(__file__).parents[1] / "data" / "upgrade" / "protocol_1"


def unpack(name: str, directory: Path) -> Path:
    """What an archive holds, in ``directory``."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        unpacking.unpack(archive, directory)
    return directory


def answer(name: str) -> pa.Table:
    """Those rows of a read from its agent that a journal and a protocol of today have too: without what was told again and again, and
    without what was said of a log in one value beside its segments, which agents publish anew in other words."""
    with pa.ipc.open_stream(DATA / f"{name}.arrow") as stream:
        rows = stream.read_all().drop_columns(["facts"])
    rows = rows.filter(pc.invert(pc.or_(pc.starts_with(rows["kind"], "beat"), pc.equal(rows["kind"], "facts"))))
    for column in (EVENTS.field(column) for column in _LISTED):
        rows = rows.append_column(column, pa.array([None if column.type == pa.binary() else -1] * len(rows), column.type))
    return rows


def status() -> Status:
    """What that agent said of itself when it had answered both."""
    return Status.decode((DATA / "status.json").read_bytes())


def plan() -> Plan:
    """The plan that the second answer is of."""
    return Plan.decode((DATA / "plan.json").read_bytes())


def append(segment: Path, base_offset: int, *batches: Batch) -> int:
    """Batches at the end of a segment, as its broker would append them; returns the next offset."""
    with segment.open("ab") as file:
        for each in batches:
            file.write(encode(each, base_offset))
            base_offset += max(1, len(each.records))
    return base_offset


def sizes(log_dir: Path) -> dict[tuple[str, int], int]:
    """How many bytes the segments of each partition have."""
    found: dict[tuple[str, int], int] = {}
    for segment in sorted(log_dir.glob("*/*.log")):
        topic, _, number = segment.parent.name.rpartition("-")
        found[topic, int(number)] = found.get((topic, int(number)), 0) + segment.stat().st_size
    return found
