"""Which pages a reader of a backlog lets go of: those that nobody but it has brought into the page cache.

What a kernel makes of it is measured by `make soak ONLY=beside` on a real broker's segments: kernels let go of pages for their own reasons.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk import segment_files
from streaming.broker.disk.segment_files import OpenSegment

PAGE = os.sysconf("SC_PAGESIZE")
SIZE = 10 * PAGE + 100
Advice = list[tuple[int, int]]


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[OpenSegment]:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(os.urandom(SIZE))
    opened = OpenSegment(path, 0)
    yield opened
    opened.close()


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Advice:
    """Where a reader lets go of pages, and how many bytes of them."""
    found: Advice = []

    def fadvise(_fd: int, begin: int, size: int, advice: int) -> None:
        if advice == os.POSIX_FADV_DONTNEED:
            found.append((begin, size))

    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    return found


def ask_cache(monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], int]) -> list[int]:
    """The answers about pages in place of the kernel, and the positions that it was asked about."""
    asked: list[int] = []
    preadv = os.preadv

    def fake(fd: int, buffers: Sequence[bytearray], position: int, flags: int = 0) -> int:
        if flags & os.RWF_NOWAIT:
            asked.append(position)
            return answer(position)
        return preadv(fd, buffers, position, flags)

    monkeypatch.setattr(os, "preadv", fake)
    return asked


def absent(_position: int) -> int:
    raise BlockingIOError


def unknown(_position: int) -> int:
    raise OSError(errno.EOPNOTSUPP, "this file system cannot tell")


def test_what_nobody_had_there_is_let_go_of_in_whole_pages(segment: OpenSegment, let_go: Advice, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask_cache(monkeypatch, absent)
    segment.read_into(np.empty(2 * PAGE, np.uint8), PAGE + 10, spare_cache=True)
    assert asked == [3 * PAGE + 9], "the end of the window: reads go ahead over its beginning"
    assert let_go == [(PAGE, 3 * PAGE)]


def test_the_end_of_a_file_is_let_go_of_too(segment: OpenSegment, let_go: Advice, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask_cache(monkeypatch, absent)
    assert segment.read_into(np.empty(4 * PAGE, np.uint8), 9 * PAGE, spare_cache=True) == PAGE + 100
    assert asked == [SIZE - 1]
    assert let_go == [(9 * PAGE, 2 * PAGE)]


@pytest.mark.parametrize("answer", [lambda _: 1, unknown], ids=["cached", "not known"])
def test_what_others_are_at_stays(
    segment: OpenSegment, let_go: Advice, monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], int]
) -> None:
    ask_cache(monkeypatch, answer)
    segment.read_into(np.empty(2 * PAGE, np.uint8), 0, spare_cache=True)
    assert let_go == []


def test_a_page_that_came_by_the_question_is_nobody_elses(segment: OpenSegment, let_go: Advice, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = iter([0, PAGE // 512])
    monkeypatch.setattr(segment_files, "_blocks_read", lambda: next(blocks))
    ask_cache(monkeypatch, lambda _: 1)
    segment.read_into(np.empty(2 * PAGE, np.uint8), 0, spare_cache=True)
    assert let_go == [(0, 2 * PAGE)]


def test_no_page_is_asked_for_twice(segment: OpenSegment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question brings it."""
    asked = ask_cache(monkeypatch, lambda position: absent(position) if position else 1)
    segment.plain_headers(0, SIZE, spare_cache=True)
    segment.read_into(np.empty(SIZE, np.uint8), 0, spare_cache=True)
    assert [position // PAGE for position in asked] == [0, 9, 10]


def test_a_reader_at_the_end_of_a_log_lets_go_of_nothing(segment: OpenSegment, let_go: Advice, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask_cache(monkeypatch, absent)
    segment.read_into(np.empty(2 * PAGE, np.uint8), 0)
    assert (asked, let_go) == ([], [])
