import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming import __version__
from streaming.common.settings import OPTIONS, Settings
from streaming.errors import SettingsError
from streaming.terminal.cli.app import COMMANDS, segtail
from streaming.terminal.configuration import render_yaml
from tests.commands import run_command
from tests.processes import SEGTAIL

ROOT = Path(__file__).resolve().parents[2]


def test_config_prints_the_defaults() -> None:
    done = run_command("config")
    assert (done.returncode, done.stdout, done.stderr) == (0, render_yaml(Settings()), "")


def test_the_file_for_people_to_copy_is_what_config_prints() -> None:
    assert (ROOT / "conf" / "segtail.yaml").read_text(encoding="utf-8") == render_yaml(Settings()), "run `make conf`"


def test_config_prints_what_file_environment_and_command_line_say(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("late_limit: 7\ntrigger: 2s\nlate_after: 2s\n")
    arguments = ["--config", str(tmp_path / "f.yaml"), "--late-after", "3s", "--set", "replicas=all", "--set", "spark.executor.cores=4"]
    done = run_command("config", *arguments, environ={"SEGTAIL_TRIGGER": "1m"})
    lines = done.stdout.splitlines()
    assert [
        line for line in lines if line.split(":")[0] in ("late_limit", "trigger", "late_after", "replicas", "  spark.executor.cores")
    ] == [
        "replicas: all",
        "trigger: 1m",
        "late_after: 3s",
        "late_limit: 7",
        "  spark.executor.cores: '4'",
    ]


def test_an_option_of_its_own_stands_against_set() -> None:
    done = run_command("config", "--late-limit", "1", "--set", "late_limit=2")
    assert "\nlate_limit: 1\n" in done.stdout


def test_every_setting_is_an_option_of_config() -> None:
    text = CliRunner().invoke(segtail, ["config", "--help"]).output
    assert [name for name in OPTIONS if f"--{name.replace('_', '-')} " not in text] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "late_limits=1"], 'unknown option "late_limits" on the command line, did you mean "late_limit"?'),
        (["--late-limit", "many"], 'late_limit takes a whole number, 0 or more, not "many" on the command line'),
        (["--config", "/nowhere/f.yaml"], "cannot read the configuration /nowhere/f.yaml: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(arguments: list[str], message: str) -> None:
    done = run_command("config", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"segtail: error: {message}\n")


def test_an_assignment_without_a_value_is_explained() -> None:
    done = run_command("config", "--set", "late_limit")
    assert done.returncode == 2
    assert "late_limit is not NAME=VALUE" in done.stderr


def test_a_reader_that_goes_away_is_no_failure_worth_a_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "streaming.terminal.cli", "config"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert done.stderr == ""


def test_help_lists_every_command_and_the_exit_statuses() -> None:
    text = run_command("--help").stdout
    assert [command for command in COMMANDS if f"\n  {command} " not in text] == []
    assert "Exit status: 0 done" in text


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_no_line_of_a_help_text_is_wider_than_80_columns(name: str) -> None:
    shown = CliRunner().invoke(segtail, [*filter(None, [name]), "--help"], terminal_width=80)
    assert (shown.exit_code, [line for line in shown.output.splitlines() if len(line) > 80]) == (0, [])


def test_version_is_the_packages_own() -> None:
    done = subprocess.run([str(SEGTAIL), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"segtail {__version__}\n"


def test_an_unknown_command_is_refused() -> None:
    done = run_command("rum")
    assert done.returncode == 2
    assert "No such command 'rum'. Did you mean 'run'?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("export", "alerts", "/nowhere", "--url", "http://a", "--url", "http://b"), "--url"),
        (("retention", "--config", "/a", "--config=/b", "--topic", "t", "--topic", "u"), "--config"),
        (("top", "-o", "json", "--format", "table"), "--format"),
    ],
)
def test_an_option_with_one_value_that_is_given_twice_is_refused(arguments: tuple[str, ...], option: str) -> None:
    done = run_command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error: {option} is given 2 times, and takes one value: give it once.\n" in done.stderr
    assert f"segtail {arguments[0]}" in done.stderr


def test_options_that_may_be_repeated_are_not_refused_and_a_word_after_two_dashes_is_no_option() -> None:
    done = run_command("config", "--set", "late_limit=1", "--set", "late_after=1m")
    assert (done.returncode, done.stderr) == (0, "")
    assert "times" not in run_command("runbook", "--", "--url", "--url").stderr


def test_a_setting_that_is_no_option_of_a_command_is_shown_with_set() -> None:
    done = run_command("run", "--state-shards", "3")
    assert done.returncode == 2
    assert done.stderr.endswith("No such option '--state-shards'. Give this setting as --set state_shards=VALUE.\n")
    assert "--set" not in run_command("run", "--frmo", "3").stderr


def test_errors_are_not_hidden_from_a_test_that_calls_a_command_itself() -> None:
    result = CliRunner().invoke(segtail, ["config", "--set", "x=1"])
    assert isinstance(result.exception, SettingsError)


def test_ctrl_c_ends_with_status_130() -> None:
    code = (
        "import streaming.terminal.cli.config as config\n"
        "from streaming.terminal.cli.app import main\n"
        "def interrupt(settings): raise KeyboardInterrupt\n"
        "config.render_yaml = interrupt\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "config"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (130, "")
