"""The Spark session of a job, with the settings that its query needs."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

_LOG4J = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}} level=%p logger=spark message="%m"%n%ex
"""

FIXED = {
    # the state lives in RocksDB: transformWithState takes no other
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.api.mode": "classic",
}
"""What the query relies on."""

DEFAULTS = {
    # a task costs a micro-batch 40 ms whatever it does; the number is fixed in the checkpoint
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.noDataProgressEventInterval": "5000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # commits of a checkpoint on a local disk without a process of their own for each file; never spark.hadoop.fs.file.impl, which breaks RocksDB
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
"""What users may set otherwise."""

_JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A small heap needs no parallel collector, and the second compiler costs a job of small batches more than it brings."""


def start_session(master: str, options: Mapping[str, str], java_home: Path, directory: Path, log_level: str) -> SparkSession:
    """Start Spark.

    Args:
        options: more options, by Spark's own names; they win over `DEFAULTS`, not over `FIXED`.
        directory: where a file for Spark's own log messages may be written.
    """
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging_file = directory / "log4j2.properties"
    logging_file.write_text(_LOG4J.format(level="info" if log_level == "debug" else "error"))
    builder = SparkSession.builder.master(master).appName("segtail")
    java_options = f"-Dlog4j2.configurationFile={logging_file.as_uri()}"
    if master.startswith("local"):
        java_options += f" {_JVM_OPTIONS}"
    for name, value in {**DEFAULTS, "spark.driver.extraJavaOptions": java_options, **options, **FIXED}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
