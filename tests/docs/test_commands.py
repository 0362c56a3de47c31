"""Every command that a document shows works: it is run here, or a list says why it cannot be, and what is tested instead."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streaming.common.settings import OPTIONS
from streaming.common.web.gate import read_web_config
from streaming.terminal.cli.app import COMMANDS
from tests.commands import run_command
from tests.docs.documented import ROOT, Command, blocks, commands, inline
from tests.docs.elsewhere import ELSEWHERE
from tests.docs.running import DONE, Sandbox, as_shown, options, sandbox, subcommand
from tests.processes import segtail, until
from tests.tools import require_tool

DOCUMENTED = commands()
NEVER_END = ("agent", "run", "demo", "page")
HASHED = "$2y$04$2PUcpqlMVVbKYbNBVySsp.6l30R3Fft6cIUEnv1E7lHMjEUj1f4Aa"

_LISTENS = re.compile(r"message=\"agent listens\" address=(\S+)")


def beginning(*words: str) -> list[Command]:
    """Commands that begin so and are run here."""
    here = [command for command in DOCUMENTED if not any(each.holds(command) for each in ELSEWHERE)]
    return [command for command in here if tuple(command.words[: len(words)]) == words]


OFFLINE = [command for command in beginning() if subcommand(command) and subcommand(command) not in NEVER_END]
AGENTS = beginning("segtail", "agent") + beginning(".venv/bin/segtail", "agent")
JOBS = beginning("segtail", "run") + beginning(".venv/bin/segtail", "run")
PAGES = beginning("segtail", "page")
MAKE = beginning("make")
HELM = beginning("helm")
PYTEST = beginning(".venv/bin/pytest")
BENCH = beginning(".venv/bin/python", "-m", "bench")
ASKING = [*beginning("curl"), *(command for command in OFFLINE if "--job" in command.words)]
"""Commands that ask a job."""
LISTED = re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
"""The targets that `make help` lists."""
RUN_HERE = [*OFFLINE, *AGENTS, *JOBS, *PAGES, *MAKE, *HELM, *PYTEST, *BENCH, *ASKING]


def each(listed: list[Command]) -> pytest.MarkDecorator:
    """One test for each command, however often it is shown without its output."""
    once = {(command.text, command.output): command for command in listed}
    return pytest.mark.parametrize("command", once.values(), ids=lambda command: f"{command.place}:{'-'.join(command.words[:3])}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return sandbox(tmp_path_factory.mktemp("world"))


def test_every_command_is_run_here_or_has_a_reason_why_not() -> None:
    assert len(DOCUMENTED) > 50
    assert [f"{command.place}: {command.text}" for command in DOCUMENTED if command not in RUN_HERE and not elsewhere(command)] == []


def elsewhere(command: Command) -> bool:
    return any(each.holds(command) for each in ELSEWHERE)


def test_every_reason_is_about_a_command_that_is_shown_and_names_what_is_there() -> None:
    assert [each.begins for each in ELSEWHERE if not any(each.holds(command) for command in DOCUMENTED)] == []
    assert [each.instead for each in ELSEWHERE if each.instead and not (ROOT / each.instead).is_file()] == []


@each([command for command in OFFLINE if command not in ASKING])
def test_a_command_that_reads_the_disk_does_what_is_shown(command: Command, world: Sandbox) -> None:
    done = world.run(command)
    assert done.returncode in DONE, done.stderr
    assert "Traceback" not in done.stderr
    if command.output is not None:
        printed = world.there(done.stdout)
        assert as_shown(command.output, printed), f"`make docs` writes into {command.place} what is printed now:\n{printed}"


@each(AGENTS)
def test_an_agent_starts_as_it_is_shown_and_ends_when_it_is_reported(command: Command, world: Sandbox, tmp_path: Path) -> None:
    arguments = [re.sub(r"^[\d.]+:\d+$", "127.0.0.1:0", word) for word in command.words[1:]]
    arguments = [_place(world.here(word), world) for word in arguments]
    with segtail(*arguments, stated=tmp_path / "said", environ=world.environment()) as agent:
        until("it listens", lambda: _LISTENS.search(agent.stated) or not agent.running())
        assert agent.running(), agent.stated
        agent.terminate()
        assert agent.wait() == 0, agent.stated


@each(PAGES)
def test_a_page_is_served_as_it_is_shown_and_ends_by_a_signal(command: Command, world: Sandbox, tmp_path: Path) -> None:
    words = [*(world.here(word) for word in command.words[1:]), "--listen", "127.0.0.1:0"]
    with segtail(*words, stated=tmp_path / "said", environ=world.environment()) as page:
        until("it is served", lambda: "segtail: the page is at http://" in page.stated or not page.running())
        assert page.running(), page.stated
        page.terminate()
        assert page.wait() == 0, page.stated


def _place(word: str, world: Sandbox) -> str:
    if word.startswith("~/"):
        return str(world.home / word[2:])
    return str(world.home / word) if (world.home / word).is_file() else word


@each(JOBS)
def test_the_options_of_a_job_are_what_it_takes(command: Command, world: Sandbox) -> None:
    name = command.words[1]
    unknown = [word for word in command.words[2:] if word.startswith("--") and word.partition("=")[0] not in options(name)]
    assert unknown == []
    asked = command.text.replace(f"segtail {name}", "segtail config", 1)
    done = world.do(world.here(asked))
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_a_job_serves_what_is_asked_of_it(world: Sandbox, tmp_path: Path, java_home: Path) -> None:
    shown = [command for command in JOBS if "--log-dirs" in command.words]
    arguments = {tuple(world.here(word) for word in command.words[1:]) for command in shown}
    assert len(arguments) == 1, "one example is enough: each takes half a minute here"
    environment = world.environment() | {"SEGTAIL_LISTEN": "127.0.0.1:0", "SEGTAIL_CHECKPOINT": str(tmp_path / "checkpoint")}
    with segtail(*arguments.pop(), stated=tmp_path / "said", environ=environment) as job:
        until("it is ready", lambda: any(name.startswith("segtail_partition_") for name, _ in job.page()))
        assert job.url is not None
        for command in ASKING:
            text = command.text.replace("http://127.0.0.1:9712", job.url.removesuffix("/metrics")).replace("curl ", "curl --fail --silent ")
            done = subprocess.run(["bash", "-c", world.here(text)], env=world.environment(), capture_output=True, text=True, check=False)
            assert done.returncode in DONE, f"{command.place}: {done.stderr}"
            assert done.stdout
        job.terminate()
        assert job.wait() == 0


@each(MAKE)
def test_a_target_of_make_is_there_and_listed(command: Command) -> None:
    (target,) = (word for word in command.words[1:] if "=" not in word)
    assert target in LISTED
    done = subprocess.run(["make", "--dry-run", "--always-make", *command.words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.programs
@each(HELM)
def test_what_helm_installs_is_rendered(command: Command, world: Sandbox) -> None:
    """``values.yaml`` is the first file in YAML of the same document that is no file of settings, whose agents are a list."""
    helm = require_tool("helm")
    assert command.words[1] in ("install", "upgrade", "template")
    values = (text for document, text in blocks("yaml") if document == command.document and not _is_of_a_job(text))
    (world.home / "values.yaml").write_text(next(values, ""))
    text = world.here(command.text).replace(f"helm {command.words[1]}", f"{helm} template", 1).replace("--install ", "")
    text = text.replace("--values values.yaml", f"--values {world.home}/values.yaml")
    done = subprocess.run(["bash", "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kind: " in done.stdout


def _is_of_a_job(text: str) -> bool:
    return isinstance(yaml.safe_load(text).get("agents"), list)


@each(PYTEST)
def test_tests_that_are_named_are_found(command: Command) -> None:
    paths = [word for word in command.words[1:] if word.startswith("tests/")]
    if paths:
        asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *command.words[1:]]
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_every_bench_that_a_page_names_is_there() -> None:
    headings = re.findall(r"^## (\w+): ", (ROOT / "docs" / "internals" / "benchmarks.md").read_text(), re.MULTILINE)
    assert len(headings) > 10
    there = {path.stem for path in (ROOT / "bench").glob("*.py") if "Left out: " in path.read_text(encoding="utf-8")}
    assert {*headings, *(name for command in BENCH for name in command.words[3:] if not name.startswith("-"))} - there == set()


def test_what_running_text_names_is_an_option_of_the_command() -> None:
    """Commands in the middle of a sentence, with words for what the reader has to put there."""
    wrong = []
    for document, program, words in inline():
        if program == "make":
            unknown = [word for word in words if re.fullmatch(r"[a-z-]+", word) and word not in LISTED]
        elif words and not words[0].startswith("-"):
            known = options(words[0]) if words[0] in COMMANDS else set()
            unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
            unknown += [] if words[0] in COMMANDS else words[:1]
        else:
            unknown = []
        wrong += [f"{document.relative_to(ROOT)}: {program} {' '.join(words)}: {word}" for word in unknown]
    assert wrong == []


@pytest.mark.programs
@pytest.mark.parametrize(("document", "text"), [pytest.param(*found, id=f"{found[0].name}-{n}") for n, found in enumerate(blocks("yaml"))])
def test_a_file_in_yaml_is_a_configuration_or_values_of_the_chart(document: Path, text: str, world: Sandbox) -> None:
    content, shown = yaml.safe_load(text), world.home / "shown.yaml"
    shown.write_text(world.here(text).replace("$2y$10$...", HASHED))
    if "tls_server_config" in content:
        read_web_config(shown)
        return
    chart = yaml.safe_load((ROOT / "helm/segtail/values.yaml").read_text())
    values = any(isinstance(chart.get(key), dict) and isinstance(value, dict) for key, value in content.items())
    if content.keys() <= OPTIONS.keys() and not values:
        done = run_command("config", "--config", shown, environ=world.environment())
    else:
        assert content.keys() <= chart.keys(), f"{document}: neither options of segtail nor values of the chart: {list(content)}"
        asked = [str(require_tool("helm")), "template", "segtail", "helm/segtail", "--values", str(shown)]
        done = subprocess.run(asked, cwd=ROOT, env=world.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["count", "groups", "transactions"])
def test_a_table_of_options_has_all_of_its_command(name: str) -> None:
    (table, *_) = re.findall(r"^\| option \| \|\n\|---\|---\|\n((?:\| .*\n)+)", (ROOT / "docs" / f"{name}.md").read_text(), re.MULTILINE)
    common = (ROOT / "docs" / "README.md").read_text().partition("\n## Options of commands\n")[2].partition("\n## ")[0]
    listed = _listed(table)
    assert sorted(_own_options(name) - listed - _listed(common)) == []
    assert sorted(listed - options(name)) == []


def _listed(table: str) -> set[str]:
    return {word for row in table.splitlines() for word in re.findall(r"--[a-z-]+", row.rpartition(" | ")[0])}


def test_the_page_of_the_doctor_names_all_of_its_options() -> None:
    assert sorted(_own_options("doctor") - {*re.findall(r"--[a-z-]+", (ROOT / "docs" / "doctor.md").read_text())}) == []


def _own_options(name: str) -> set[str]:
    """The long options of a command, without those that every command with settings takes."""
    return {each for each in options(name) if each.startswith("--")} - {"--set", "--config", "--help"}


def test_units_give_options_that_are_there() -> None:
    units = [path.read_text(encoding="utf-8") for path in (ROOT / "conf").glob("*.service")] + [text for _, text in blocks("ini")]
    started = [re.findall(r"^ExecStart=\S*segtail ((?:.*\\\n)*.*)$", unit, re.MULTILINE) for unit in units]
    assert len(started) > 1
    for name, *words in (line.replace("\\\n", " ").split() for lines in started for line in lines):
        assert [word for word in words if word.startswith("--") and word not in options(name)] == []


@pytest.mark.spark
def test_rows_are_read_as_it_is_shown(world: Sandbox, tmp_path: Path, spark: object) -> None:
    shown = [text for _, text in blocks("python") if "SparkSession" in text]
    assert shown
    with segtail(
        "agent",
        "--log-dirs",
        world.here("/var/lib/kafka/data-1"),
        "--listen",
        "127.0.0.1:0",
        stated=tmp_path / "said",
        environ=world.environment(),
    ) as agent:
        found = until("it listens", lambda: _LISTENS.search(agent.stated))
        for text in shown:
            exec(world.here(text.replace("127.0.0.1:8815", found[1])), {})
