"""The simulated agents of the benches answer a job as agents do: rows, a catalog with leaders, and logs that grow."""

from collections import Counter
from pathlib import Path
from typing import Any

from streaming.broker.protocol.consumer_messages import NOT_BEGUN
from streaming.broker.protocol.status_messages import StatusRequest
from streaming.common.catalog.catalog_tables import NOTHING_DECIDED
from streaming.common.catalog.changes import Version, unpack
from streaming.common.rows import Kind
from tests.agents import Reader
from tests.bench.fleet import RECORDS, Simulated
from tests.processes import until

LOGS = 3


def test_a_simulated_agent_answers_a_job(tmp_path: Path) -> None:
    agent: Any = Simulated(tmp_path, 7, LOGS)
    reader = Reader(agent)
    reader.register()
    until("its beginning is published", lambda: reader.plan().seq != NOT_BEGUN)
    begun = Counter(row.kind for row in reader.step())
    assert (begun[Kind.APPEARED], begun[Kind.CENSUS], begun[Kind.CENSUS_END]) == (LOGS, LOGS, 1)
    agent.append(2)
    assert sum(row.records for row in reader.step()) == 2 * RECORDS
    (part,) = agent.service.status(StatusRequest(catalog=True)).catalog
    catalog = unpack(part.changes, Version(part.version.process, part.version.number), whole=part.whole).applied(NOTHING_DECIDED)
    assert (catalog.partitions["leader"].to_pylist(), len(catalog.logs), len(catalog.topics)) == ([7] * LOGS, LOGS, 1)
