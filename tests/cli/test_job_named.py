"""The job that commands ask: of `--job`, else of the environment or a file, unless log dirs are named."""

from pathlib import Path

import pytest

from streaming.errors import SettingsError
from streaming.terminal.configuration import load, render_yaml
from tests.cli.served_groups import GROUPS, job
from tests.commands import run_command
from tests.tables import each_row

NOBODY = "http://127.0.0.1:1"


def test_the_environment_names_the_job() -> None:
    with job(GROUPS) as url:
        named = run_command("groups", "--json", "--job", url)
        done = run_command("groups", "--json", environ={"SEGTAIL_JOB": url})
    assert (done.returncode, done.stdout) == (named.returncode, named.stdout)
    assert '"late"' in done.stdout


def test_a_file_names_the_job(tmp_path: Path) -> None:
    config = tmp_path / "segtail.yaml"
    with job(GROUPS) as url:
        config.write_text(f"job: {url}\nlog_dirs: [{tmp_path}]\n")
        done = run_command("why", "late", "--config", config)
    assert done.stdout.startswith("late: ")


def test_what_the_command_line_says_wins(tmp_path: Path) -> None:
    with job(GROUPS) as url:
        done = run_command("why", "late", "--job", url, environ={"SEGTAIL_JOB": NOBODY})
    read = run_command("groups", "--log-dirs", tmp_path, environ={"SEGTAIL_JOB": NOBODY})
    assert done.stdout.startswith("late: ")
    assert (read.returncode, str(tmp_path) in read.stderr) == (2, True)


@each_row("command", [["groups"], ["why", "g"], ["top", "--once"], ["count"], ["disk"], ["retention"], ["transactions"]])
def test_every_command_that_has_the_option_takes_it_from_the_environment(command: list[str]) -> None:
    done = run_command(*command, environ={"SEGTAIL_JOB": NOBODY})
    assert done.returncode == 2
    assert "127.0.0.1:1 cannot be asked" in done.stderr


def test_the_doctor_asks_it_too() -> None:
    done = run_command("doctor", environ={"SEGTAIL_JOB": NOBODY})
    assert "127.0.0.1:1 cannot be asked" in done.stdout


def test_a_password_in_its_address_is_not_printed() -> None:
    environ = {"SEGTAIL_JOB": "https://me:hush@segtail.example.org"}
    assert "hush" not in render_yaml(load(None, environ, {}))
    with pytest.raises(SettingsError, match="job takes an address") as refused:
        load(None, {"SEGTAIL_JOB": "ftp://me:hush@segtail.example.org"}, {})
    assert "hush" not in str(refused.value)
