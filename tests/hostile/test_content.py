"""Content that lies, before a real agent: what a client may write into a topic, and what a broken disk may hold, costs it some MiB."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.protocol.group_messages import POSITIONS_ASKED
from streaming.errors import AgentError
from streaming.kafka.formats.compression import compress
from streaming.kafka.formats.layout import CHECKED_FROM, crc32c
from streaming.kafka.formats.wire import uuid_text
from streaming.simulator.batch_writer import Batch, Codec, Record, encode
from streaming.spark.client.agent_client import AgentClient
from tests.builders import NOW, batch, log_dir, partition
from tests.formats.claims import claiming, empty_records
from tests.processes import Segtail, segtail, until

MIB = 1 << 20
_BOMB_BYTES = 200 * MIB
_HOLE_BYTES = 512 * MIB
_MORE_BYTES = 40 * MIB
"""What an agent may take beyond what it took before: windows of its threads and a few copies of what is opened."""

_HOLES = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "meta.properties.tmp")


def address(agent: Segtail) -> str | None:
    found = re.search(r"message=\"agent listens\" address=(\S+)", agent.stated)
    return found[1] if found else None


def peak(agent: Segtail) -> int:
    """The most bytes that it has held at once."""
    (process,) = agent.family
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) << 10


def asked(client: AgentClient, topic: str, offset: int) -> dict[str, object] | None:
    """The position of an offset of partition 0, once it is known."""
    row = pa.Table.from_pylist(
        [
            {
                "broker": 1,
                "topic": topic,
                "topic_id": uuid_text((1).to_bytes(16)),
                "partition": 0,
                "offset": offset,
                "upto": 2,
                "reads_uncommitted": 0,
            }
        ],
        POSITIONS_ASKED,
    )
    try:
        (found,) = client.positions(row).to_pylist()
    except AgentError:  # a busy machine
        return None
    return None if found["state"] == "filling" else dict(found)


@pytest.mark.slow
def test_a_bomb_in_a_users_topic_and_holes_in_small_files(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    plain, bombed = partition(disk, "plain"), partition(disk, "bombed")
    plain.append(batch(2))
    records = (Record(value=bytes(_BOMB_BYTES), timestamp=NOW), Record(value=b"v", timestamp=NOW + 5))
    bombed.append(Batch(records=records, codec=Codec.ZSTD))
    _append_empty_records(partition(disk, "__consumer_offsets").directory, 1_000_000)
    arguments = ("agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail(*arguments, stated=tmp_path / "said") as agent:
        client = AgentClient(until("it listens", lambda: address(agent)))
        client.register(Register("job", "earliest", False))
        found = until("the plain topic is counted", lambda: asked(client, "plain", 1))
        assert found["state"] == "known"
        before = peak(agent)
        found = until("the bombed topic is counted", lambda: asked(client, "bombed", 1))
        assert (found["state"], found["next_offset"], found["next_timestamp_ms"]) == ("known", 1, -1)
        for _ in range(3):
            asked(client, "bombed", 1)
        assert client.status().doubts["record_time"] == 1
        for name in _HOLES:
            with (disk.path / name).open("wb") as file:
                file.truncate(_HOLE_BYTES)
        until("the holes are refused", lambda: client.status().doubts["checkpoint"] > 0)
        assert peak(agent) - before < _MORE_BYTES
        agent.terminate()
        assert agent.wait() == 0
    assert "Traceback" not in agent.stated


def _append_empty_records(directory: Path, count: int) -> None:
    """A batch of some hundred bytes that holds as many records as it says."""
    data = bytearray(claiming(encode(Batch(records=(Record(),)), 0), Codec.ZSTD, compress(Codec.ZSTD, empty_records(count)), count))
    data[17:21] = crc32c(bytes(data[CHECKED_FROM:])).to_bytes(4)
    (directory / f"{0:020}.log").write_bytes(data)
