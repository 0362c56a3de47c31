"""The public stream of a real broker: every row once in Parquet under kills of all parts."""

from pathlib import Path

import pytest

from tests.soak.streams import SHARES, run_streams

pytestmark = pytest.mark.spark

SEED = 5


def test_sinks_hold_every_row_once_whatever_is_killed(kafka_jars: None, tmp_path: Path) -> None:
    report = run_streams(tmp_path, len(SHARES), SEED)
    assert report.problems == ()
    assert set(report.kills) == set(SHARES)
    assert min(report.rows.values()) > 0
