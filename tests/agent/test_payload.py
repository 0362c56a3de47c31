"""Keys and values of records stay on the broker's host: neither the journal nor an answer of an agent holds a byte of them."""

from pathlib import Path

import pyarrow as pa

from streaming.broker.protocol.excerpt_messages import ExcerptsRequest, Scan, ScanRequest
from streaming.simulator.batch_writer import Batch, Record
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent, Reader, read_range
from tests.builders import NOW, log_dir, partition

_KEY, _VALUE = b"key of a person", b"value of a person"


def _bytes(batches: list[pa.RecordBatch]) -> bytes:
    return b"".join(batch.serialize().to_pybytes() for batch in batches)


def test_no_cache_and_no_answer_holds_a_key_or_a_value(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(Batch(records=(Record(_KEY, _VALUE, NOW),)))
    segment = log.active.path("log").read_bytes()
    assert _KEY in segment
    assert _VALUE in segment  # what is not compressed would be found
    agent = Agent(disk.path, cache=tmp_path / "cache")
    reader = Reader(agent).begin()
    sent = _bytes(read_range(agent.service, reader.asked(reader.plan())).to_batches())
    with agent.served() as address:
        client = AgentClient(address)
        excerpts = client.excerpts(ExcerptsRequest(excerpt_bytes=1 << 30)).excerpts
        for scan in Scan:
            sent += _bytes([batch for table in client.scan(ScanRequest(scan=scan, excerpts=excerpts)) for batch in table.to_batches()])
        client.close()
    agent.close()
    agent.cache.close()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert b"orders" in sent
    assert kept
    assert [word for word in (_KEY, _VALUE) if word in sent + kept] == []
