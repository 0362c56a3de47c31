"""What commands print fits the terminal, on log dirs that a real broker left; a pipe gets everything."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from rich.cells import cell_len

from streaming.pages.listings.cells import shell_lines
from tests.broker.install import KAFKA_VERSION
from tests.commands import run_command
from tests.frozen import unpack
from tests.recorded.recordings import Replayed, replay
from tests.tables import each_row

pytestmark = pytest.mark.xdist_group("widths")

COMMANDS = {
    "disk": ("disk", "--free", "9GiB"),
    "disk by partition": ("disk", "--by", "partition", "--free", "9GiB"),
    "disk by log dir": ("disk", "--by", "dir", "--free", "9GiB"),
    "transactions": ("transactions",),
    "retention": ("retention",),
    "count": ("count",),
    "count by partition": ("count", "--by", "partition"),
    "groups": ("groups",),
    "a group": ("groups", "held"),
    "a group's history": ("groups", "--history", "held"),
    "why": ("why", "held", "gone", "--filter", ""),
    "why of all": ("why", "--filter", "e"),
    **{
        f"top {view}": ("top", "--view", view, "--format", "table")
        for view in ("problems", "partitions", "transactions", "retention", "groups")
    },
    "doctor": ("doctor",),
    "runbooks": ("runbook",),
}
NARROW = {"COLUMNS": "80"}
WITHOUT_LOG_DIRS = ("runbook",)
WITHOUT_TIME = ("doctor", "runbook")
_LEFT_OUT = re.compile(r"\(no room for ([^:;]+)[:;]")


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Consumer groups that stand still, a transaction that holds one of them up, and others."""
    return replay("why", KAFKA_VERSION, tmp_path_factory.mktemp("widths"))


def run(replayed: Replayed, name: str, environ: Mapping[str, str]) -> CompletedProcess[str]:
    return run_words(replayed, COMMANDS[name], environ)


def run_words(replayed: Replayed, words: Sequence[str], environ: Mapping[str, str]) -> CompletedProcess[str]:
    command, *rest = words
    disk = replayed.disk("standing")
    where = () if command in WITHOUT_LOG_DIRS else ("--log-dirs", ",".join(map(str, disk.log_dirs)))
    at = () if command in WITHOUT_TIME else ("--at", disk.now_ms)
    return run_command(command, *rest, *where, *at, environ=environ)


def breakable(line: str) -> bool:
    """Whether it could be shorter: a path or a name that is longer than a terminal is left whole, to be copied."""
    return len(line.split()) > 1


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_what_is_left_out_is_named(replayed: Replayed, name: str) -> None:
    narrow, piped = (run(replayed, name, environ=environ) for environ in (NARROW, {}))
    assert narrow.returncode == piped.returncode in (0, 3, 4), narrow.stderr
    assert [line for line in narrow.stdout.splitlines() if cell_len(line) > 80 and breakable(line)] == []
    assert "-o wide" not in piped.stdout
    if left := _LEFT_OUT.findall(one_line(narrow.stdout)):
        wide = {tuple(columns(line)) for line in piped.stdout.splitlines()}
        heads = [columns(line) for line in narrow.stdout.splitlines()]
        assert all(any((*head, *each.split(", ")) in wide for head in heads) for each in left)
    elif "are cut" not in narrow.stdout:
        assert one_line(narrow.stdout) == one_line(piped.stdout)


def one_line(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


def columns(line: str) -> list[str]:
    """The headings of a table, without what marks its order."""
    return re.split(r"\s{2,}", line.translate({ord("▲"): " ", ord("▼"): " "}).strip())


@pytest.mark.parametrize("name", [each for each in COMMANDS if each != "runbooks"])
def test_wide_is_what_a_pipe_gets(replayed: Replayed, name: str) -> None:
    wide = [*COMMANDS[name], "-o", "wide"]
    wide = [*wide[: wide.index("--format")], "-o", "wide"] if "--format" in wide else wide
    assert run(replayed, name, environ={}).stdout == run_words(replayed, wide, environ=NARROW).stdout


def test_a_table_for_a_wider_terminal_has_more_of_the_same_columns_and_the_order_stays(replayed: Replayed) -> None:
    heads = []
    for width in ("60", "80", "120", "400"):
        heads.append(columns(run(replayed, "retention", environ={"COLUMNS": width}).stdout.splitlines()[0]))
    assert [len(each) for each in heads] == sorted({len(each) for each in heads})
    assert all(more[: len(some)] == some for some, more in pairwise(heads))
    assert columns(run(replayed, "retention", environ={}).stdout.splitlines()[0]) == heads[-1]


def test_a_command_that_is_broken_over_lines_is_the_same_to_a_shell(tmp_path: Path) -> None:
    frozen = unpack("transactions_v2", tmp_path)
    asked = ("transactions", *frozen.log_dirs, "--at", frozen.frozen_ms)
    narrow, piped = (run_command(*asked, environ=environ).stdout for environ in ({"COLUMNS": "60"}, {}))
    whole = [shlex.split(line) for line in piped.splitlines() if line.startswith("kafka-")]
    assert len(whole) > 1
    assert [shlex.split(line) for line in narrow.replace("\\\n", "").splitlines() if line.startswith("kafka-")] == whole
    assert max(map(len, narrow.splitlines())) <= 60


@each_row(
    "command, width, expected",
    [
        ("ls", 80, ["ls"]),
        ("a --one 1 --two 2", 14, ["a --one 1 \\", "  --two 2"]),
        ("a --one 'x y' b", 12, ["a --one \\", "  'x y' b"]),
        ("a --flag --other", 12, ["a --flag \\", "  --other"]),
        ("abcdefgh ij", 8, ["abcdefgh", " \\", "  ij"]),
    ],
)
def test_lines_of_commands(command: str, width: int, expected: list[str]) -> None:
    assert shell_lines(command, width) == expected
