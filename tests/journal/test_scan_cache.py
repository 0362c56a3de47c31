"""What is kept of scans: whatever becomes of the file, only time is lost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.journal import scan_cache
from streaming.broker.journal.scan_cache import FILE_NAME, ScanCache
from tests.scratch import scratch


def key(number: int) -> SegmentKey:
    return SegmentKey(number, 1, 2, 3, 4)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two times, of which one was found twice, and two ladders, one of them gone."""
    cache = ScanCache(tmp_path)
    cache.keep_times([(key(1), 10), (key(2), -1)], [])
    cache.keep_ladders({key(3): b"three", key(4): b"four"})
    cache.keep_times([(key(1), 11)], [])
    cache.keep_ladders({}, [key(4), key(9)])
    cache.close()
    return tmp_path


def test_another_process_has_what_was_kept(home: Path) -> None:
    cache = ScanCache(home)
    assert (cache.times(), cache.laddered()) == ({key(1): 11, key(2): -1}, {key(3)})
    assert (cache.ladder(key(3)), cache.ladder(key(4))) == (b"three", None)
    cache.close()


def test_without_a_directory_nothing_is_kept() -> None:
    cache = ScanCache(None)
    cache.keep_times([(key(1), 10)], [])
    cache.keep_ladders({key(3): b"three"})
    assert (cache.times(), cache.laddered(), cache.ladder(key(3))) == ({}, set(), None)
    cache.close()


@pytest.mark.parametrize("rubbish", [b"", b"rubbish", bytes(4096), b"segtail scans 2\n" + bytes(99)])
def test_a_file_full_of_rubbish_is_begun_anew(tmp_path: Path, rubbish: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_bytes(rubbish)
    for _ in range(2):
        cache = ScanCache(tmp_path)
        assert cache.times() in ({}, {key(1): 5})
        cache.keep_times([(key(1), 5)], [])
        cache.close()
    assert cache._times == {key(1): 5}
    assert len(caplog.records) == bool(rubbish)


@given(st.integers(0, 400), st.integers(0, 255))
def test_what_comes_before_a_damage_is_kept_and_nothing_wrong_ever(at: int, value: int) -> None:
    with scratch() as root:
        cache = ScanCache(Path(root))
        for number in range(6):
            cache.keep_times([(key(number), number)], [])
        cache.close()
        path = Path(root, FILE_NAME)
        content = bytearray(path.read_bytes())
        at = at % len(content)
        content[at] = value
        path.write_bytes(content)
        again = ScanCache(Path(root))
        found = again.times()
        again.keep_ladders({key(7): b"seven"})
        assert again.ladder(key(7)) == b"seven"
        again.close()
        assert found == {key(number): number for number in range(len(found))}


def test_a_file_that_was_cut_off_goes_on_behind_its_last_whole_record(home: Path) -> None:
    path = home / FILE_NAME
    path.write_bytes(path.read_bytes()[:-3])
    cache = ScanCache(home)
    assert cache.ladder(key(4)) == b"four"
    cache.keep_times([(key(5), 5)], [])
    cache.close()
    again = ScanCache(home)
    assert again.times() == {key(1): 11, key(2): -1, key(5): 5}
    again.close()


def test_two_agents_that_share_it_do_not_both_write(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = ScanCache(home), ScanCache(home)
    assert [record.message for record in caplog.records] == ["scans are not kept: they are repeated after a restart"]
    second.keep_times([(key(8), 8)], [])
    assert (second.times(), first.times()) == ({}, {key(1): 11, key(2): -1})
    first.close()


def test_a_directory_that_cannot_be_made_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ScanCache(tmp_path / "file" / "below")
    cache.keep_times([(key(1), 1)], [])
    assert [record.message for record in caplog.records] == ["scans are not kept: they are repeated after a restart"]


def test_what_is_of_no_use_is_written_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_cache, "_SPARE_BYTES", 1000)
    cache = ScanCache(tmp_path)
    for number in range(100):
        cache.keep_ladders({key(number): bytes(100)}, [key(number - 1)])
        cache.keep_times([(key(1000), number)], [])
    assert (tmp_path / FILE_NAME).stat().st_size < 5000
    assert (cache.times(), cache.laddered(), cache.ladder(key(99))) == ({key(1000): 99}, {key(99)}, bytes(100))
    cache.close()
