"""``segtail dump`` as people run it: a process with its exit status, its output and its complaints."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import batch
from tests.dump.writing import log_of
from tests.limits import SECONDS
from tests.processes import SEGTAIL, take_interrupts

LOGS = Path(__file__).parents[1] / "data" / "logs"
PAY = LOGS / "transactions" / "pay-0"
SEGMENT = f"{0:020}.log"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A log of which every dump is far more than a pipe holds."""
    return log_of(tmp_path, [batch(2) for _ in range(4000)])


def segtail_dump(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "streaming.terminal.cli", "dump", *map(str, arguments)]


def test_a_partition_is_shown_as_lines_below_their_names() -> None:
    done = segtail_dump(PAY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[:4] == ["position", "base_offset", "last_offset", "count"]
    assert len([line for line in done.stdout.splitlines() if not line.startswith("#")]) == 2 + 104


def test_options_choose_rows_and_form() -> None:
    options = ("--from-offset", "100", "--to-offset", "120", "--producer-id", "1", "--transactional", "--format", "json")
    found = [json.loads(line) for line in segtail_dump(PAY, *options).stdout.splitlines()]
    assert found
    assert all(row["last_offset"] >= 100 and row["base_offset"] <= 120 and row["producer_id"] == 1 for row in found)
    assert {row["transactional"] for row in found} == {True}


@pytest.mark.parametrize("time", ["1795145224492", "2026-11-20T03:27:04.492", "2026-11-20T05:27:04.492+02:00"])
def test_a_time_is_milliseconds_or_a_date(time: str) -> None:
    found = [json.loads(line) for line in segtail_dump(PAY, "--from-time", time, "--format", "json").stdout.splitlines()]
    assert min(row["max_timestamp"] for row in found) == 1795145224492


def test_a_summary_is_exact() -> None:
    """Sums of the rows that the same log is dumped as."""
    (summary,) = map(json.loads, segtail_dump(PAY, "--summary", "--format", "json").stdout.splitlines())
    batches = [json.loads(line) for line in segtail_dump(PAY, "--format", "json").stdout.splitlines()]
    assert summary["bytes"] == sum(path.stat().st_size for path in PAY.glob("*.log")) == sum(row["size"] for row in batches)
    assert (summary["segments"], summary["batches"], summary["records"]) == (2, 104, 290)
    assert (len(batches), sum(row["count"] for row in batches)) == (104, 290)
    assert (summary["base_offset"], summary["next_offset"]) == (batches[0]["base_offset"], batches[-1]["last_offset"] + 1) == (0, 290)
    assert summary["control_batches"] == sum(row["control"] for row in batches)
    assert summary["transactional_batches"] == sum(row["transactional"] for row in batches)
    assert summary["producers"] == len({row["producer_id"] for row in batches} - {None})
    assert summary["max_timestamp"] == max(row["max_timestamp"] for row in batches)
    assert sum(codec["bytes"] for codec in summary["codecs"].values()) == summary["bytes"]


def test_verify_finds_and_says_so_by_its_status(tmp_path: Path) -> None:
    whole = segtail_dump("--verify", PAY)
    assert (whole.returncode, whole.stdout, whole.stderr) == (0, "9 files: everything is whole, 104 batches with 41.3 KiB\n", "")
    copy = tmp_path / "pay-0"
    shutil.copytree(PAY, copy)
    data = bytearray((copy / SEGMENT).read_bytes())
    data[-1] ^= 1
    (copy / SEGMENT).write_bytes(data)
    done = segtail_dump("--verify", copy)
    assert done.returncode == 1
    assert f"{copy / SEGMENT}: position " in done.stderr
    assert "expected bytes with the CRC that the batch names" in done.stderr
    assert done.stdout == "1 finding in 1 of 9 files; 103 batches with 40.8 KiB are whole\n"


@pytest.mark.parametrize("asked", [("--records",), ("--summary",), ("--format", "text"), ("--from-offset", "0"), ("--transactional",)])
def test_rows_are_verified_and_shown_where_they_are_asked_for(asked: tuple[str, ...]) -> None:
    *shown, last = segtail_dump("--verify", PAY, *asked).stdout.splitlines()
    assert last.startswith("9 files: everything is whole, 104 batches")
    assert len(shown) >= 2


def test_of_rows_for_programs_the_conclusion_stands_beside() -> None:
    done = segtail_dump("--verify", PAY, "--json")
    assert [json.loads(line)["kind"] for line in done.stdout.splitlines()] == ["batch"] * 104
    assert done.stderr.startswith("9 files: everything is whole, 104 batches")


@pytest.mark.parametrize("extra", [(), ("--records",), ("--format", "json"), ("--format", "arrow"), ("--format", "csv")], ids="".join)
def test_a_pipe_that_is_closed_early_is_no_error(large: Path, extra: tuple[str, ...]) -> None:
    with subprocess.Popen(command(large, *extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.parametrize("directory", [PAY, PAY.parent], ids=["little", "more"])
def test_an_output_that_is_full_is_reported_once_and_as_such(directory: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(*directory.parent.glob(f"{directory.name}*")), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "segtail: error: the output cannot be written: No space left on device\n")


def test_what_is_nothing_of_kafkas_is_not_possible_as_asked(tmp_path: Path) -> None:
    done = segtail_dump(tmp_path, PAY)
    assert done.returncode == 2
    assert f"{tmp_path}: neither a partition directory nor a log dir: expected" in done.stderr
    assert str(PAY) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--payload", "hex", "--no-payload"), "exclude each other"),
        (("--from-time", "yesterday"), "'yesterday' is none of ISO 8601"),
        (("--format", "csv", str(PAY / f"{0:020}.index")), "rows of one kind"),
    ],
)
def test_what_cannot_be_asked_is_reported(arguments: tuple[str, ...], message: str) -> None:
    done = segtail_dump(PAY / SEGMENT, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_ctrl_c_ends_it_at_once(large: Path) -> None:
    # python -m says that a signal killed it (-2) where Ctrl-C came while Python ran a string, as it does for each dataclass of an import
    with subprocess.Popen(
        [SEGTAIL, "dump", large, "--records"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=take_interrupts
    ) as process:
        assert process.stdout is not None
        process.stdout.read(100)  # it is at work, and waits for somebody to read on
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SECONDS) == 130
