"""Commands to copy: what is in them can neither be taken for an option nor for anything else than a name."""

import inspect
import shlex
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.verdicts.commands import COSTS, Command, Commands, GroupCommands
from tests.tables import each_row

HERE = Commands(server="kafka-1:9092")
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def test_the_command_that_ends_a_hanging_transaction() -> None:
    assert HERE.abort("my.topic", 3, 279) == Command(
        "kafka-transactions.sh --bootstrap-server kafka-1:9092 abort --topic my.topic --partition 3 --start-offset 279"
    )


def test_without_a_known_broker_there_is_a_place_for_one() -> None:
    assert " --bootstrap-server HOST:PORT " in Commands().abort("t", 0, 1).line


def test_a_name_like_an_option_is_taken_for_a_name() -> None:
    assert " --topic=--help " in HERE.abort("--help", 0, 1).line
    assert " --group=-x --topic=-t:0 " in GroupCommands(group="-x").reset_to_earliest("-t", 0).line
    assert HERE.why("-x").line == "segtail why -- -x"
    assert replace(HERE, asked="--job http://kafka-1:9712").why("-x").line == "segtail why --job http://kafka-1:9712 -- -x"
    assert HERE.dated_in_future("-x").line == 'segtail dump --from-time "$(($(date +%s) + 60))" -- -x'
    assert HERE.retention("-x").line == "segtail retention -- -x"
    assert HERE.keep_longer("--alter", "retention.ms", 5).line.endswith("--entity-name=--alter --add-config retention.ms=10")


@given(NAMES)
def test_a_name_comes_out_of_a_shell_as_it_is_or_there_is_no_command_but_a_reason(name: str) -> None:
    command = HERE.abort(name, 3, 7)
    if not command.line:
        assert command.reason
        return
    words = shlex.split(command.line)
    assert name in words or f"--topic={name}" in words
    assert [word for word in words if word.startswith("-")][-2:] == ["--partition", "--start-offset"]


@each_row("name", ["a\nb", "a\x1b[31m", "a\u202eb", "a\u2066b", "\u200f", "", "x" * 1001])
def test_a_name_that_cannot_be_copied_gives_no_command_but_the_reason(name: str) -> None:
    for command in (HERE.abort(name, 0, 1), HERE.why(name), HERE.verify(name), HERE.describe_transaction(name), HERE.retention(name)):
        assert command.line == ""
        assert command.reason


def test_redacted_names_are_in_no_command() -> None:
    redacted = Commands(redacted=True)
    assert redacted.why("4f2a") == redacted.describe_transaction("4f2a") == Command(reason="names are redacted here")
    assert redacted.abort("orders", 0, 1).line  # topics are never redacted


def test_a_name_may_have_a_thousand_characters() -> None:
    names = ("n" * 1000, "n" * 1001, "")
    assert [bool(Commands().why(name).line) for name in names] == [True, False, False]
    assert [Commands().why(name).reason for name in names] == ["", "a name has 1,001 characters", "a name is empty"]


def test_a_limit_is_doubled_and_where_there_is_none_there_is_no_command() -> None:
    lines = [Commands().keep_longer("t", "retention.ms", limit) for limit in (500, 0, -1)]
    assert [each.line.rpartition("=")[2] for each in lines] == ["1000", "0", ""]
    assert lines[2].reason == "its limits are not known"


def test_of_each_command_it_is_written_down_what_it_may_lose() -> None:
    made = {
        name
        for of in (Commands, GroupCommands)
        for name, each in vars(of).items()
        if not name.startswith("_") and inspect.isfunction(each) and inspect.get_annotations(each, eval_str=True)["return"] is Command
    }
    assert COSTS.keys() == made
    document = Path("docs/alerts.md").read_text("utf-8")
    assert not [name for name, cost in COSTS.items() if f" | {cost} |" not in document]
