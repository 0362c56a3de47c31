"""What an agent leaves of the page cache of a real broker's segments: the measurement of `make soak`, in small."""

from pathlib import Path

import pytest

from tests.soak.beside import is_disturbed, problems_of, run_beside

BACKLOG = 320 << 20
_ATTEMPTS = 3


def test_what_readers_are_at_stays_cached_and_a_backlog_does_not(kafka_jars: None, tmp_path: Path) -> None:
    """What the agent does it does each time; what another process of the machine does, for example all other tests, it does not."""
    undisturbed = []
    for attempt in range(_ATTEMPTS):
        report = run_beside(tmp_path / str(attempt), rounds=1, seconds=2, backlog_bytes=BACKLOG)
        assert report.without[0].sends > 0
        assert report.beside[0].sends > 0
        if not is_disturbed(report):
            undisturbed.append(problems_of(report))
            if not undisturbed[-1]:
                return
    if not undisturbed:
        pytest.skip("this machine takes pages out of its page cache without any reader: what an agent leaves there cannot be seen")
    pytest.fail(f"{undisturbed}")
