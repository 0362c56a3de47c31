"""A process that runs the examples of docs/spark.md as they stand, with names for what they leave open, and prints what came of them.

python -m tests.broker.documented_spark BOOTSTRAP AGENTS LOG_DIRS DIRECTORY
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.broker.clients import producer, send, transaction
from tests.broker.running_query import session
from tests.limits import SECONDS

ROOT = Path(__file__).parents[2]
RECORDS = 50
"""So many are appended while the stream runs."""


def main(servers: str, agents: str, log_dirs: str, directory: str) -> int:
    """Run all examples in one session, in their order."""
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    shown: list[list[dict[str, Any]]] = []
    type(spark.range(1)).show = lambda frame, *_: shown.append([row.asDict() for row in frame.collect()])  # type: ignore[method-assign, assignment]
    names: dict[str, Any] = {"spark": spark, "AGENTS": agents, "LOG_DIRS": log_dirs, "SERVERS": servers}
    names |= {"CHECKPOINT": f"{directory}/checkpoint", "PATH": f"{directory}/hours"}
    for code in examples():
        exec(compile(code, "docs/spark.md", "exec"), names)
        if "query" in names:  # it reads what is appended from now on
            query = names.pop("query")
            query.processAllAvailable()
            send(producer(servers), "orders", 1, 1, RECORDS)
            query.processAllAvailable()
            query.stop()
        if "ended" in names and names["ended"].isStreaming:
            joined = names.pop("ended").select("base_offset", "b.kind", "transactional_id")
            query = joined.writeStream.format("memory").queryName("joined").start()
            query.processAllAvailable()
            buying = producer(servers, transactional_id="buyer")
            buying.init_transactions(SECONDS)
            with transaction(buying):
                buying.produce("orders", b"bought", partition=1)
                buying.flush(SECONDS)
            query.processAllAvailable()
            query.stop()
    hours = spark.read.parquet(f"{directory}/hours").groupBy("topic").sum("records").collect()
    slow, hot = shown
    joined_rows = [row.asDict() for row in spark.table("joined").collect()]
    found = {"hours": {row[0]: row[1] for row in hours}, "joined": joined_rows, "slow": slow, "hot": hot}
    sys.stdout.write(json.dumps(found, default=str))
    return 0


def examples() -> list[str]:
    """The code of the chapter; a stream goes on every second, where people wait a minute."""
    text = (ROOT / "docs" / "spark.md").read_text().partition("\n## Examples\n")[2].partition("\n## ")[0]
    return [
        code.replace("1 minute", "1 second") if "writeStream" in code else code
        for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    ]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
