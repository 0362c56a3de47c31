"""A stream that cannot be: it says why at its first call."""

from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from streaming.errors import UsageError


class RefusedStream(DataSourceStreamReader):
    """Each call raises a UsageError with ``why``. PySpark hides an error of `DataSource.streamReader` itself behind one of its own."""

    def __init__(self, why: str) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """It is the first call."""
        self._refuse()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """It is the first call where a checkpoint is there."""
        self._refuse()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Raises, too."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises, too."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(self._why)
