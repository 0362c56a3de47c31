"""A process that runs the examples of docs/spark.md as they stand, with names for what they leave open, and prints what came of them.

python -m tests.broker.documented_spark BOOTSTRAP AGENTS LOG_DIRS DIRECTORY
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def main(servers: str, agents: str, log_dirs: str, directory: str) -> int:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "streaming/spark/lookup"), str(ROOT)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import DataFrame, SparkSession

    from tests.broker.clients import producer, send
    from tests.broker.install import spark_kafka_jars
    from tests.broker.running_query import SETTINGS

    builder = SparkSession.builder.master("local[2]").config("spark.python.authenticate.socketTimeout", "600s")
    for name, value in {**SETTINGS, "spark.jars": ",".join(map(str, spark_kafka_jars()))}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    shown: list[list[dict[str, Any]]] = []
    DataFrame.show = lambda frame, *_: shown.append([row.asDict() for row in frame.collect()])  # type: ignore[method-assign, assignment]
    names: dict[str, Any] = {"spark": spark, "AGENTS": agents, "LOG_DIRS": log_dirs, "SERVERS": servers}
    names |= {"CHECKPOINT": f"{directory}/checkpoint", "PATH": f"{directory}/hours"}
    examples = (ROOT / "docs/spark.md").read_text().partition("\n## Examples\n")[2].partition("\n## ")[0]
    for code in re.findall(r"^```python\n(.*?)^```$", examples, re.MULTILINE | re.DOTALL):
        exec(compile(code, "docs/spark.md", "exec"), names)
        if "query" in names:  # it reads what is appended from now on
            query = names.pop("query")
            query.processAllAvailable()
            send(producer(servers), "orders", 1, 1, 50)
            while not spark.read.parquet(f"{directory}/hours").count():
                query.processAllAvailable()
            query.stop()
    hours = spark.read.parquet(f"{directory}/hours").groupBy("topic").sum("records").collect()
    sys.stdout.write(json.dumps({"hours": {row[0]: row[1] for row in hours}, "slow": shown[0], "hot": shown[1]}, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
