"""Every command that reads log dirs finds them below a directory, and says what it could not search there."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.builders import batch, log_dir, partition
from tests.commands import run_command
from tests.disk.machine import Machine
from tests.frozen import FROZEN, LOG_DIRS
from tests.scratch import scratch
from tests.tables import each_row
from tests.tools import needs_root, nobody

NOT_KNOWN = 4


COMMANDS = {
    "disk": ("disk",),
    "transactions": ("transactions",),
    "retention": ("retention",),
    "count": ("count",),
    "groups": ("groups",),
    "history": ("groups", "--history", "--group", "billing"),
    "why": ("why", "--group", "billing"),
    "top": ("top",),
    "doctor": ("doctor",),
}
AT = ("--at", FROZEN["overdue"])
TIMELESS = ("doctor",)


@pytest.fixture
def jbod() -> Iterator[Path]:
    """A broker's two log dirs as its host has them: ``disk1/kafka`` and ``disk2/kafka``, which everybody may read."""
    with scratch() as name:
        data = Path(name) / "data"
        for number in (1, 2):
            shutil.copytree(LOG_DIRS / "overdue" / "n1" / f"d{number - 1}", data / f"disk{number}" / "kafka")
        for path in (Path(name), data, *data.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield data


def run(name: str, *more: object) -> CompletedProcess[str]:
    command, *rest = COMMANDS[name]
    return run_command(command, *more, *rest, *(() if name in TIMELESS else AT))


def words(done: CompletedProcess[str]) -> str:
    """All that was printed, as one line."""
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("name", COMMANDS)
@needs_root
def test_what_may_not_be_searched_is_a_doubt_of_every_command(jbod: Path, name: str) -> None:
    whole = run(name, jbod)
    assert "cannot be read" not in words(whole)
    hidden = jbod / "disk2" / "kafka"
    hidden.chmod(0o700)
    with nobody():
        done = run(name, jbod)
    assert f"{hidden} cannot be read, and log dirs may be there" in words(done)
    if name != "doctor":
        assert "1 of 2 log dirs of broker 1 is found here: it is registered with ewkcxZmcsSlzQm_rYaHk7g" in words(done)
    found = {"top", "doctor", "retention"}  # what is wrong comes before what is not known
    assert done.returncode == NOT_KNOWN or (name in found and done.returncode == 3)


@needs_root
def test_no_all_clear_of_disks_comes_without_its_doubt(jbod: Path) -> None:
    assert run("disk", jbod).returncode == 0
    (jbod / "disk2" / "kafka").chmod(0o700)
    with nobody():
        done, answer = run("disk", jbod), run("disk", jbod, "--json")
    assert (done.returncode, answer.returncode) == (NOT_KNOWN, NOT_KNOWN)
    assert not done.stdout.startswith("No log dir is full")
    assert len(json.loads(answer.stdout)["doubts"]) == 2


@needs_root
def test_where_nothing_may_be_searched_that_is_the_error(jbod: Path) -> None:
    for number in (1, 2):
        (jbod / f"disk{number}").chmod(0o700)
    with nobody():
        done = run("disk", jbod)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no log dir is found below {jbod}: {jbod}/disk1, {jbod}/disk2 cannot be read" in done.stderr


def test_a_registration_names_what_nobody_has_hidden_and_a_named_log_dir_is_all_that_is_asked_for(jbod: Path) -> None:
    (jbod / "disk2" / "kafka").rename(jbod.parent / "elsewhere")
    done = run("disk", jbod)
    assert done.returncode == NOT_KNOWN
    assert "1 of 2 log dirs of broker 1 is found here" in done.stderr
    alone = run("disk", jbod / "disk1" / "kafka")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout.startswith("As far as is known here, no log dir is full")
    assert "1 of 2 log dirs of broker 1 is found here: it is registered with ewkcxZmcsSlzQm_rYaHk7g" in alone.stdout
    open_there = run("transactions", jbod / "disk1" / "kafka")
    assert open_there.returncode == NOT_KNOWN, "what hangs on the other one is in no row"
    assert "as far as is known here:\n- 1 of 2 log dirs of broker 1 is found here" in open_there.stdout
    both = run("disk", jbod / "disk1" / "kafka", jbod.parent / "elsewhere")
    assert "log dirs of broker 1" not in both.stdout
    (jbod.parent / "elsewhere" / "meta.properties").write_text("")
    unread = run("disk", jbod / "disk1" / "kafka", jbod.parent / "elsewhere")
    assert "log dirs of broker 1" not in unread.stdout + unread.stderr, "that one may be the other"


@pytest.mark.parametrize("name", [each for each in COMMANDS if each != "doctor"])
def test_a_directory_above_answers_as_the_log_dirs_do_by_path_and_by_option(jbod: Path, name: str) -> None:
    each_dir = run(name, "--log-dirs", f"{jbod}/disk1/kafka,{jbod}/disk2/kafka", "--format", "json")
    for below in ((jbod,), ("--log-dirs", jbod), (jbod / "disk1", "--log-dirs", jbod / "disk2")):
        done = run(name, *below, "--format", "json")
        assert done.returncode == each_dir.returncode
        assert _rows(done) == _rows(each_dir)


def _rows(done: CompletedProcess[str]) -> object:
    """The rows, without the commands in them: these name the log dirs as they were given. No such group is the same everywhere, too."""
    if not done.stdout:
        return done.stderr
    return [{name: value for name, value in row.items() if "command" not in name} for row in json.loads(done.stdout)["rows"]]


def test_words_with_a_slash_are_paths_and_the_others_are_names(jbod: Path) -> None:
    done = run_command("retention", "lag-size-A", jbod, "--json", *AT)
    assert {row["topic"] for row in json.loads(done.stdout)["rows"]} == {"lag-size-A"}
    assert "does not exist" in run_command("retention", f"{jbod}/nothing", *AT).stderr
    assert "there is no group a/b" in run_command("why", jbod, "a/b", *AT).stderr
    assert "PATH cannot be given with --job" in run_command("retention", jbod, "--job", "http://127.0.0.1:1").stderr


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A log dir as a broker before Kafka 2.4 leaves it: without an id of the cluster, of topics or of log dirs."""
    disk = log_dir(tmp_path)
    partition(disk, "t", topic_id=None).append(batch(5))
    disk.write_high_watermarks()
    (disk.path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return disk.path


@each_row("command", [*COMMANDS.values(), ("dump", "--verify", "--summary")])
def test_a_log_dir_of_a_broker_before_2_4_is_read(command: tuple[str, ...], old: Path) -> None:
    done = run_command(*command, old)
    assert done.returncode in (0, 3, NOT_KNOWN), done.stderr
    assert "meta.properties" not in done.stderr
    if command == ("count",):
        assert "5 data records in 1 partition" in done.stdout


@each_row("command", ["retention", "count", "transactions", "groups", "why", "disk", "top"])
def test_a_word_that_is_a_log_dir_or_holds_one_is_a_path(command: str, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old.parent)
    assert run_command(command, "d0", "--set", "listen=127.0.0.1:1").returncode != 2
    monkeypatch.chdir(old.parent.parent)
    assert run_command(command, old.parent.name, "--set", "listen=127.0.0.1:1").returncode != 2


@each_row("command", ["disk", "count", "groups", "transactions"])
def test_paths_are_written_as_the_option_takes_them_too(command: str, old: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(exist_ok=True)
    both = f"{old},{tmp_path / 'empty'}"
    word, option = run_command(command, both, "--at", "2026-01-01"), run_command(command, "--log-dirs", both, "--at", "2026-01-01")
    assert (word.returncode, word.stdout, word.stderr) == (option.returncode, option.stdout, option.stderr)
    assert f"{tmp_path / 'empty'} is not a Kafka log dir" in word.stdout + word.stderr


@each_row(
    "command, more",
    [("disk", ". For a topic write --topic orders"), ("page", "")],
)
def test_a_word_that_is_no_path_says_what_a_path_is(command: str, more: str) -> None:
    done = run_command(command, "orders")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.endswith(f"there is no log dir orders here: write its path, or that of a directory that holds some{more}\n")


def _limits(done: CompletedProcess[str]) -> dict[str, object]:
    return {row["topic"]: row["retention_limit_ms"] for row in json.loads(done.stdout)["rows"]}


def test_one_log_dir_of_a_broker_is_judged_by_the_metadata_log_in_the_other_one(jbod: Path) -> None:
    alone, both = (run("retention", *paths, "--json") for paths in ((jbod / "disk2" / "kafka",), (jbod,)))
    assert _limits(alone).items() <= _limits(both).items()
    assert len(set(_limits(alone).values())) > 1, "none is assumed"
    assert alone.stderr == ""
    assert "disk1" not in run("disk", jbod / "disk2" / "kafka").stdout, "only its metadata log is read"


def test_a_copy_beside_makes_it_unknown_which_metadata_log_counts_and_that_is_said_first(jbod: Path) -> None:
    shutil.copytree(jbod / "disk1", jbod / "copy")
    done = run("disk", jbod / "disk2" / "kafka")
    assert done.returncode == NOT_KNOWN
    assert "segtail: no metadata log can be read here, so the limits of topics are assumed" in done.stderr


@each_row("name", COMMANDS)
def test_a_broker_that_has_nothing_to_do_with_the_log_dirs_is_not_spoken_of(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.run(machine.properties())
    command, *rest = COMMANDS[name]
    done = run_command(command, LOG_DIRS / "overdue" / "n1", *rest, *(() if name in TIMELESS else AT), proc=machine.proc)
    assert (done.returncode == 2) == (name == "why"), done.stderr  # there is no such group
    assert "server.properties" not in done.stderr
