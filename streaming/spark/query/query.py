"""The one streaming query: it folds events by shard, and hands the changed rows to a sink; and why it failed, in one line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.common.rows import PACKED, ROWS, SHARD, unpack_rows
from streaming.common.state_row import STATES
from streaming.errors import SegtailError
from streaming.spark.query.processor import ShardProcessor

_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")

_TOO_SLOW = re.compile(r"Python worker failed to connect back|CANNOT_OPEN_SOCKET|SocketTimeoutException")

_CALL_FAILED = "An error occurred while calling "
_CAUSE = "Caused by: "
_CONDITION = re.compile(r"\[[A-Z][A-Z_.]+\]")

QUERY_NAME = "segtail"

_CHECK = "require_minimum_pandas_version"


def fold_events(events: DataFrame, sink: Callable[[pa.Table, int], None]) -> DataStreamWriter:
    """The query over a stream of `streaming.common.rows.PACKED` events; ``sink`` gets the changed rows and the number of each micro-batch.

    It has no timers: values that depend on the clock are computed when the metrics are rendered.
    """
    with _without_pandas():
        states = events.groupBy(SHARD).transformWithStateInPandas(
            ShardProcessor(), outputStructType=from_arrow_schema(PACKED), outputMode="Update", timeMode="None"
        )

    def deliver(batch: DataFrame, batch_id: int) -> None:
        try:
            shards = batch.collect()  # a few packed rows: Arrow would cost the driver a thread and a stream to serve them
        except (PySparkException, Py4JError) as error:
            # without the whole text: Spark parses it with regular expressions, and its thread runs out of stack
            raise FoldError(reason(error)) from None
        changed = [unpack_rows(bytes(shard[ROWS]), STATES) for shard in shards]
        sink(pa.Table.from_batches(changed, STATES), batch_id)

    return states.writeStream.queryName(QUERY_NAME).outputMode("update").foreachBatch(deliver)


@contextmanager
def _without_pandas() -> Iterator[None]:
    """PySpark does not look at the version of pandas: it would import it for that, and only the workers need it."""
    checks = vars(functions)
    check, checks[_CHECK] = checks[_CHECK], lambda: None
    try:
        yield
    finally:
        checks[_CHECK] = check


class FoldError(SegtailError):
    """A micro-batch could not be folded."""


def reason(error: Exception) -> str:
    """Why it was raised, in one line. Whether the JVM is still there does not matter."""
    return reason_in(error_text(error))


def reason_in(text: str) -> str:
    """The line with the reason.

    If an exception was raised in a Python process, that is its last line. Else it is the first line, Spark's own condition. If the first
    line only reports that a call into the JVM failed, it is Spark's last condition together with the innermost cause.
    """
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return raised[-1]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if not causes or not text.startswith(_CALL_FAILED):
        return text.partition("\n")[0]
    conditions = [line.removeprefix(_CAUSE).lstrip(": ") for line in lines if _CONDITION.search(line)]
    return causes[-1] if not conditions or conditions[-1] == causes[-1] else f"{conditions[-1]} ({causes[-1]})"


def error_text(error: Exception) -> str:
    """The text of an error. Only the JVM has that of its own exceptions: where it is gone, what was called has to do."""
    try:
        return str(error)
    except (Py4JError, OSError):  # py4j asks the JVM for the text each time
        return error.errmsg.strip() if isinstance(error, Py4JJavaError) else type(error).__name__


def was_too_slow(error: Exception) -> bool:
    """Whether Spark did not wait until a Python process had started: for 10 or 15 s, which are not enough on a busy host."""
    return _TOO_SLOW.search(error_text(error)) is not None
