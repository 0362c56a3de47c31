"""Names of files and directories that nobody chose well, in a log dir and of one: no command fails over them, or prints them raw."""

import os
import re
import shutil
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.builders import batch, log_dir, partition
from tests.commands import run_command
from tests.fuzz.commands import commands
from tests.tables import each_row

NAMES = [b"\x1b[31mred", b"not\xff-utf8", b"new\nline", "bidi\u202e".encode(), b"bell\x07"]
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    made = log_dir(tmp_path)
    log = partition(made, "orders", topic_id=7)
    log.append(batch(3, producer=7))
    log.close()
    made.write_high_watermarks()
    made.write_log_starts()
    return made


def with_odd_names(disk: Path) -> None:
    source = disk / "orders-0"
    for name in NAMES:
        for directory in (name + b"-0", b"t-0." + name + b"-delete", b"t-0." + name + b"-future"):
            shutil.copytree(source, disk / os.fsdecode(directory))
    for name in NAMES:
        for suffix in (b"", b".log", b".index", b".snapshot"):
            (source / os.fsdecode(name + suffix)).write_bytes(b"x" * 61)
    shutil.copytree(disk, disk.parent / "copy")
    (disk.parent / "copy").rename(source / "orders-0")  # a log dir in a partition in a log dir


def test_no_command_fails_over_names_in_a_log_dir_or_prints_them_raw(disk: LogDir) -> None:
    before = {command: run_command(*command).returncode for command in commands(disk.path)}
    with_odd_names(disk.path)
    csv = ("dump", "--format", "csv", disk.path)
    for command in [*commands(disk.path), csv]:
        ended = run_command(*command)
        assert ended.returncode == before.get(command, 0), ended.stderr
        shown = ended.stderr if "arrow" in command else ended.stdout + ended.stderr
        assert RAW.findall(shown) == [], command


@each_row("form", ["text", "csv", "json"])
def test_dump_shows_a_path_that_is_no_text_as_escapes(disk: LogDir, form: str) -> None:
    odd = disk.path.parent / f"{form}\x1b[31m\n\udcff\u202e"
    shutil.copytree(disk.path / "orders-0", odd / "orders-0")
    for path in (odd, odd / "orders-0" / f"{0:020}.log"):
        ended = run_command("dump", "--format", form, path)
        assert ended.returncode == 0, ended.stderr
        assert RAW.findall(ended.stdout + ended.stderr) == []
        assert r"\x1b[31m" in ended.stdout or r"\u001b[31m" in ended.stdout
    ended = run_command("dump", "--format", form, odd / "nothing")
    assert (ended.returncode, RAW.findall(ended.stdout + ended.stderr)) == (2, [])


def test_a_log_dir_whose_name_does_not_print_is_refused(disk: LogDir) -> None:
    odd = disk.path.rename(disk.path.parent / "d\x1b[31m\n\udcff\u202e")
    for command in commands(odd):
        if "--log-dirs" in command:
            ended = run_command(*command)
            assert (ended.returncode, ended.stderr[:-1].isprintable()) == (2, True), ended.stderr
            assert "log_dirs takes directories" in ended.stderr
