"""What an agent leaves of the page cache of a real broker's segments: the measurement of `make soak`, in small."""

from pathlib import Path

from tests.soak.beside import problems_of, run_beside

BACKLOG = 320 << 20


def test_what_readers_are_at_stays_cached_and_a_backlog_does_not(kafka_jars: None, tmp_path: Path) -> None:
    report = run_beside(tmp_path, rounds=1, seconds=2, backlog_bytes=BACKLOG)
    assert problems_of(report) == []
    assert report.before.hot >= report.hot_bytes
    assert report.without[0].sends > 0
    assert report.beside[0].sends > 0
