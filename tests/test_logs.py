import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

from streaming.common import logs


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """`configure` changes the process; pytest's own handlers come back afterwards (tests/conftest.py)."""
    logging.getLogger().handlers = []
    yield
    logging.getLogger("streaming").setLevel(logging.NOTSET)
    logging.captureWarnings(False)


def test_text_is_key_value_with_quotes_where_a_value_is_not_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "text")
    logging.getLogger("streaming.broker.watcher").warning(
        "log %s", "stopped", extra={"topic": "a.b", "position": 7, "reason": 'no "magic"', "empty": ""}
    )
    time, rest = capsys.readouterr().err.split(" ", 1)
    assert time.startswith("time=20")
    assert time.endswith("Z")
    assert (
        rest
        == 'level=warning logger=streaming.broker.watcher message="log stopped" topic=a.b position=7 reason="no \\"magic\\"" empty=""\n'
    )


def test_a_message_with_line_breaks_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "text")
    logging.getLogger("x").error("one\ntwo")
    assert capsys.readouterr().err.splitlines()[0].endswith('message="one\\ntwo"')


def test_json_is_one_object_a_line_with_the_fields_of_extra(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logging.getLogger("x").info("é", extra={"partition": 3, "level": "other", "path": ValueError})
    (line,) = capsys.readouterr().err.splitlines()
    content = json.loads(line)
    assert content.pop("time").endswith("Z")
    assert content == {"level": "info", "logger": "x", "message": "é", "partition": 3, "path": "<class 'ValueError'>"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_is_never_lost(capsys: pytest.CaptureFixture[str], form: str) -> None:
    logs.configure("info", form)
    try:
        raise ValueError("deep down")
    except ValueError:
        logging.getLogger("x").exception("failed")
    lines = capsys.readouterr().err.splitlines()
    assert ("ValueError: deep down" in json.loads(lines[0])["exception"]) if form == "json" else (lines[-1] == "ValueError: deep down")


def test_what_is_below_the_level_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning", "text")
    logging.getLogger("x").info("quiet")
    logging.getLogger("py4j.clientserver").info("quiet too")
    assert capsys.readouterr().err == ""


def test_every_call_into_the_jvm_is_not_worth_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("debug", "text")
    logging.getLogger("py4j.clientserver").info("Command to send")
    assert capsys.readouterr().err == ""


def test_only_its_own_loggers_debug(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("debug", "text")
    for name in ("watchdog.observers.inotify_buffer", "asyncio", "streaming.broker.watcher.watcher"):
        logging.getLogger(name).debug("a file")
    (line,) = capsys.readouterr().err.splitlines()
    assert "logger=streaming.broker.watcher.watcher" in line
    logs.set_level("warning")
    for name in ("watchdog", "streaming.broker"):
        logging.getLogger(name).info("a file")
    assert capsys.readouterr().err == ""


def test_pythons_warnings_become_messages(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old spelling", DeprecationWarning, stacklevel=1)
    content = json.loads(capsys.readouterr().err)
    assert (content["level"], content["logger"]) == ("warning", "py.warnings")
    assert "old spelling" in content["message"]


def test_configuring_twice_does_not_log_twice(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "text")
    logs.configure("info", "json")
    logging.getLogger("x").info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_once_means_once_for_the_same_fields_and_never_for_what_the_answer_says(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "text")
    logs.log_once(("answered",))
    for path in ("a", "a", "b"):
        logging.getLogger("x").warning("not readable", extra={"path": path})
        logging.getLogger("answered").warning("not readable", extra={"path": path})
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().err.splitlines()] == ["path=a", "path=b"]


@pytest.mark.parametrize(("form", "structured"), [("text", False), ("json", True)])
def test_a_command_s_message_is_a_sentence_unless_json_is_asked_for(
    form: str, structured: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure("info", form)
    logs.as_sentences()
    logging.getLogger("x").warning("log cannot be listed", extra={"path": "/data/or\x1bders-7", "error": "no such file"})
    written = capsys.readouterr().err
    assert (written == "segtail: log cannot be listed (path /data/or\\x1bders-7; error no such file)\n") is not structured
    assert written.startswith("{") is structured


def test_where_nobody_configures_logging_a_message_says_what_it_is_about(capfd: pytest.CaptureFixture[str]) -> None:
    script = "from streaming.spark.source.agent_connections import ask_all; ask_all(['127.0.0.1:1'], lambda client: client.status())"
    subprocess.run([sys.executable, "-c", script], check=True)
    stated = capfd.readouterr().err
    assert stated.startswith("agent does not take part address=127.0.0.1:1 reason=refused error=")
    assert stated.count("\n") == 1


SOURCE_OF_A_JOB = """
from concurrent.futures import wait
from streaming.broker.protocol.agent_calls import Reason
from streaming.errors import AgentError
from streaming.spark.source import agent_connections
from streaming.spark.source.job_options import parse_options
from streaming.spark.source.stream import EventStreamReader

EventStreamReader(parse_options({"agents": "127.0.0.1:1", "checks": "checks"}))
agent_connections.ask_all(["127.0.0.1:1"], lambda client: client.status())

def plan(client):
    raise AgentError("agent at 127.0.0.1:1: no plan", Reason.FAILED)

line = agent_connections.line("127.0.0.1:1")
asked = line.ask(plan)
wait([asked])
line.answer(asked, "plan")
"""


def test_what_the_job_says_of_an_agent_its_source_does_not_say_again(capfd: pytest.CaptureFixture[str]) -> None:
    """The job asks for each agent's status, and not for a plan."""
    subprocess.run([sys.executable, "-c", SOURCE_OF_A_JOB], check=True)
    stated = capfd.readouterr().err
    assert stated == 'agent does not take part address=127.0.0.1:1 reason=failed error="agent at 127.0.0.1:1: no plan"\n'
