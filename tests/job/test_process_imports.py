"""What each process of a job imports: a module that one of them does not need costs its CPU and memory in every job, up to six times."""

import subprocess
import sys

from pyspark.sql.pandas.types import from_arrow_schema

from streaming.common.rows import PACKED
from streaming.spark.source.job_options import SCHEMA
from tests.tables import each_row

LIBRARIES = {"cryptography", "lz4", "numpy", "pandas", "pyarrow", "pydantic", "watchdog", "yaml"}


@each_row(
    ("imported", "left_out"),
    [
        ("streaming.spark.source.datasource", LIBRARIES),
        ("streaming.spark.source.job_data_source", LIBRARIES),
        ("streaming.spark.query.processor", LIBRARIES),
        ("streaming.spark.source.stream", {"pandas", "pydantic", "watchdog"}),
        ("streaming.spark.job.job", {"pandas", "watchdog"}),
    ],
)
def test_a_process_of_a_job_does_without_what_it_does_not_need(imported: str, left_out: set[str]) -> None:
    """Planners that ask for a schema and for the names of values, the source's runner and planner, the driver."""
    code = f"import sys, {imported}; print(*sorted({left_out!r} & {{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_the_schema_of_the_source_is_that_of_the_rows() -> None:
    assert from_arrow_schema(PACKED) == SCHEMA
