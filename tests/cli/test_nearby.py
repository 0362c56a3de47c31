"""The job or the brokers of this machine are found by commands that name neither."""

import json
from pathlib import Path

import pytest

from streaming.broker.protocol.status_json import Status
from tests.broker.install import KAFKA_VERSION
from tests.builders import NOW
from tests.cli.served_groups import GROUPS, job
from tests.commands import run_command
from tests.disk.machine import Machine
from tests.frozen import FROZEN, LOG_DIRS
from tests.recorded.recordings import replay
from tests.serving import answering
from tests.tables import each_row
from tests.top.fake_job import FakeJob, serving

NO_JOB = ("--set", "listen=127.0.0.1:1")
COMMANDS = (["top", "--plain"], ["why"], ["groups"], ["transactions"], ["retention"], ["count"], ["disk"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which broker 1 runs, with a log in its log dir."""
    made = Machine(tmp_path)
    made.run(made.properties())
    return made


def listens(url: str) -> tuple[str, str]:
    return "--set", f"listen={url.removeprefix('http://')}"


@each_row("command", COMMANDS)
def test_the_brokers_that_run_here_are_read_where_no_job_answers(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.run(machine.properties())
    done = run_command(*command, *NO_JOB, proc=machine.proc)
    assert done.returncode in (0, 3, 4), done.stderr
    assert f"segtail: no --log-dirs is given: those of the brokers that run here are read, {machine.path / 'd0'}\n" in done.stderr


@each_row("command", COMMANDS)
def test_where_nothing_is_found_one_sentence_has_both_ways(command: list[str]) -> None:
    done = run_command(*command, *NO_JOB, proc=Path("/nowhere"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "give --log-dirs, or a PATH with log dirs" in done.stderr
    assert "or --job http://HOST:PORT to ask a running job, for none answers at http://127.0.0.1:1" in done.stderr


def test_the_job_of_this_machine_comes_before_its_brokers(machine: Machine) -> None:
    with serving(FakeJob(Status(at_ms=NOW, version="0", ready=True, verdict="all is well", freshness="now"))) as url:
        done = run_command("top", "--plain", *listens(url), proc=machine.proc)
        other = run_command("top", "--plain", "--at", NOW, *listens(url), proc=machine.proc)
    assert done.stdout.startswith("verdict: all is well\n")
    assert done.stderr == f"segtail: neither --job nor --log-dirs is given: the job at {url} is asked\n"
    assert "those of the brokers that run here are read" in other.stderr, "a job cannot be asked about another time"


@each_row("status, is_job", [(503, True), (404, False), (500, False)])
def test_what_answers_is_a_job_also_while_it_starts(status: int, is_job: bool) -> None:
    with answering(lambda _: (status, b"not yet")) as url:
        done = run_command("groups", *listens(url), proc=Path("/nowhere"))
    assert done.returncode == 2
    assert (f"the job at {url} is asked" in done.stderr) is is_job


def test_log_dirs_of_several_brokers_and_what_cannot_be_known(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run(machine.properties("a.properties", dirs=f"{tmp_path}/d0, {tmp_path}/gone"), number=1)
    machine.run(machine.properties("b.properties", node=2, dirs="d2"), number=2)
    machine.run(tmp_path / "hidden.properties", number=3)
    done = run_command("disk", "--json", *NO_JOB, proc=machine.proc)
    dirs = [each["log_dir"] for each in json.loads(done.stdout)["log_dirs"]]
    assert sorted(Path(each).resolve() for each in dirs) == [tmp_path / "d0", tmp_path / "d2"]
    (tmp_path / "other").mkdir()
    alone = Machine(tmp_path / "other")
    alone.run(tmp_path / "hidden.properties")
    refused = run_command("disk", *NO_JOB, proc=alone.proc)
    assert "hidden.properties of a broker that runs here cannot be read: No such file or directory" in refused.stderr


def test_why_alone_is_about_all_groups_that_need_a_look() -> None:
    with job(GROUPS) as url:
        done, answer = run_command("why", "--job", url), run_command("why", "--json", "--job", url)
    assert [line.split(":")[0] for line in done.stdout.splitlines() if "records left in" in line or "left not known" in line] == [
        "late",
        '"a b"',
    ]
    assert done.stdout.splitlines()[-1] == "nothing is wrong with 1 other group"
    assert (done.returncode, answer.returncode) == (3, 3)
    assert [row["summary"]["group"] for row in json.loads(answer.stdout)["rows"]] == ["late", "a b"]
    with job(GROUPS[2:]) as url:
        calm = run_command("why", "--job", url)
    assert (calm.returncode, calm.stdout) == (0, "nothing is wrong with 1 consumer group\n")


def test_what_begins_like_a_path_is_one_also_where_groups_are_named(tmp_path: Path) -> None:
    done = run_command("groups", f"{tmp_path}/none", *NO_JOB, proc=Path("/nowhere"))
    assert done.returncode == 2
    assert f"{tmp_path}/none does not exist" in done.stderr


def test_a_name_that_is_not_there_brings_the_similar_ones(tmp_path: Path) -> None:
    with job(GROUPS) as url:
        assert run_command("why", "lat", "--job", url).stderr == "segtail: error: there is no group lat; similar: late\n"
    overdue = LOG_DIRS / "overdue" / "n1"
    for command in ("retention", "transactions", "count"):
        done = run_command(command, overdue, "lag-siz-A", "--at", FROZEN["overdue"])
        assert (done.returncode, "lag-siz-A lies in these log dirs; similar: lag-size-A" in done.stderr) == (2, True), done.stderr
        named = run_command(command, overdue, "lag-size-A-0", "--at", FROZEN["overdue"])
        assert (named.returncode, named.stderr.splitlines()[-1]) == (
            2,
            "segtail: error: lag-size-A-0 is partition 0 of topic lag-size-A: name the topic",
        )
    replayed = replay("why", KAFKA_VERSION, tmp_path).disk("standing")
    missed = run_command("groups", "hel", *replayed.log_dirs, "--at", replayed.now_ms)
    assert (missed.returncode, missed.stderr.splitlines()[-1]) == (2, "segtail: error: there is no group hel; similar: held")


def test_the_doctor_looks_at_the_brokers_that_run_here_too_but_not_on_the_host_of_a_job(machine: Machine, tmp_path: Path) -> None:
    def found(*arguments: object) -> list[tuple[str, str]]:
        done = run_command("doctor", "--listen", "127.0.0.1:0", "--checkpoint", tmp_path / "new", "--json", *arguments, proc=machine.proc)
        return [(each["state"], each["what"]) for each in json.loads(done.stdout)["rows"] if each["check"] in ("log dirs", "permissions")]

    named = f"no --log-dirs is given: those of the brokers that run here are looked at, {machine.path / 'd0'}"
    assert found()[0] == ("fine", named)
    assert "not applicable" not in dict(found())
    assert found("--agents", "http://127.0.0.1:1") == [("not applicable", "no log dir is given")]
    (machine.path / "server.properties").unlink()
    refused = f"{machine.path / 'server.properties'} of a broker that runs here cannot be read: No such file or directory"
    assert found() == [("unknown", refused), ("not applicable", f"not checked: {refused}")]
