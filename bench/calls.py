"""What calls of an agent cost, both sides in one process: a small one, and the rows of a range.

The agent is simulated (`bench.fleet`), its journal, answers and server are an agent's own. The range has a row for each log as it is found.

Left out: TLS, a network, many clients at once, and what an agent does besides.
"""

import tempfile
from pathlib import Path

from bench.fleet import Simulated
from bench.measuring import Bounds, median, show
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.spark.client.agent_client import AgentClient
from tests.processes import until

CALLS = 500
LOGS = 100_000
MIB = 128


def run(_: Bounds) -> None:
    """Print one table: CPU of a small call, and of reading so many MiB of rows as they are in memory."""
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        agent = Simulated(Path(directory), 1, LOGS)
        server = agent.serve()
        client = AgentClient(f"http://{server.address}")
        client.register(Register("bench", "earliest", resumed=False, run="run"))
        until("its beginning is published", lambda: agent.journal.end().seq >= LOGS)
        plan = client.plan(PlanRequest("bench", "run", "", -1, None, 0))
        asked = Range("bench", "run", plan.journal, plan.after, plan.seq)
        small = median(lambda: [client.status() for _ in range(CALLS)]) / CALLS
        rows = client.read(asked)
        large = median(lambda: client.read(asked)) / rows.nbytes * MIB * (1 << 20)
        server.close()
    table = [("a small call, CPU ms", f"{small * 1e3:.2f}"), (f"{MIB} MiB of rows, CPU s", f"{large:.2f}")]
    show(f"calls of an agent; the range has {rows.num_rows:,} rows, {rows.nbytes / (1 << 20):.0f} MiB", ("", ""), table)
