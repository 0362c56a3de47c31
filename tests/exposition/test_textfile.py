"""The page as a file."""

from pathlib import Path
from threading import Thread

import pytest

from streaming.errors import UsageError
from streaming.pages.exposition.textfile import write_textfile
from tests.exposition.reading import page, samples
from tests.view.rows import log, new_table


def test_the_file_is_the_page_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "segtail.prom"
    text = page(new_table(log()))
    write_textfile(path, b"old\n")
    write_textfile(path, text.encode())
    assert samples(path.read_text()) == samples(text)
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_it(tmp_path: Path) -> None:
    """The collector runs as another user."""
    path = tmp_path / "segtail.prom"
    write_textfile(path, b"x 1\n")
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_reader_finds_one_page_or_the_next_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / "segtail.prom"
    pages = [bytes([digit]) * 300_000 for digit in b"01"]
    write_textfile(path, pages[0])

    def write() -> None:
        for number in range(60):
            write_textfile(path, pages[number % 2])

    writer = Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert path.read_bytes() in pages
    writer.join()


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "segtail.prom"
    with pytest.raises(UsageError, match=rf"--textfile {path}: the directory .* does not exist"):
        write_textfile(path, b"x 1\n")


def test_a_file_that_cannot_be_replaced_stays_and_the_unfinished_one_goes(tmp_path: Path) -> None:
    path = tmp_path / "segtail.prom"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(UsageError, match="it is no regular file"):
        write_textfile(path, b"x 1\n")
    assert list(tmp_path.iterdir()) == [path]
