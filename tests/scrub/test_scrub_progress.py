"""Where a scrub stands, on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.scrub.scrub_progress import FoundSegment, ScrubProgress, file_of, load, store
from streaming.kafka.scan.soundness import Damage, Fault

KEY = SegmentKey(5, 1000, 1_700_000_000_000, 2049, 77)
KEPT = ScrubProgress(
    directory_id="d",
    began_ms=5,
    ended_ms=3,
    running=True,
    directory="orders-0",
    behind=4,
    key=KEY,
    position=900,
    checked=12345,
    found=(
        FoundSegment(Path("/d/orders-0/00000000000000000005.log"), KEY, (Damage(Fault.CRC, 61, 7),), 3),
        FoundSegment(Path("/d/orders-1/00000000000000000005.log"), KEY, error="Input/output error"),
    ),
)


@pytest.mark.parametrize("kept", [KEPT, ScrubProgress()])
def test_what_is_kept_is_found_again(kept: ScrubProgress, tmp_path: Path) -> None:
    store(tmp_path / "kept", kept)
    assert load(tmp_path / "kept") == kept
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_without_a_file_it_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load(tmp_path / "kept") == ScrubProgress()
    assert caplog.records == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"version": 2}', '{"version": 1}', '{"version": 1, "key": [1], "found": []}', '{"version": 1, "key": 5}']
)
def test_what_is_not_understood_is_stated_and_it_begins_anew(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "kept").write_text(text)
    assert load(tmp_path / "kept") == ScrubProgress()
    assert [vars(record)["path"] for record in caplog.records] == [str(tmp_path / "kept")]


@given(cut=st.integers(0, 600), new=st.binary(max_size=5))
def test_a_file_that_is_damaged_stops_no_agent(tmp_path_factory: pytest.TempPathFactory, cut: int, new: bytes) -> None:
    path = tmp_path_factory.mktemp("kept") / "kept"
    store(path, KEPT)
    data = path.read_bytes()
    path.write_bytes(data[:cut] + new + data[cut + len(new) :])
    assert isinstance(load(path), ScrubProgress)


def test_each_log_dir_has_a_file_of_its_own(tmp_path: Path) -> None:
    assert len({file_of(tmp_path, Path(name)) for name in ("/a", "/b", "/a/b")}) == 3
