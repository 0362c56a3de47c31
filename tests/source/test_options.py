"""The options of the data source."""

from pathlib import Path

import pytest

from streaming.errors import UsageError
from streaming.source.options import parse_options


def test_defaults() -> None:
    options = parse_options({"agents": "a:1"})
    assert (options.agents, options.address_file, options.consumer, options.start_from) == (("a:1",), None, "", "active")
    assert (options.resumed, options.shards, options.max_bytes, options.wait_ms, options.relation) == (False, 64, 128 << 20, 0, "events")


def test_names_are_taken_in_any_case_and_addresses_with_spaces() -> None:
    options = parse_options({"AGENTS": " a:1, b:2 ,", "Max_Bytes": "7", "resumed": "true"})
    assert (options.agents, options.max_bytes, options.resumed) == (("a:1", "b:2"), 7, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shards", "0"),
        ("shards", "-1"),
        ("shards", "many"),
        ("max_bytes", "1.5"),
        ("max_bytes", "\N{SUPERSCRIPT TWO}"),
        ("max_bytes", "0"),
        ("wait_ms", ""),
        ("start_from", "noon"),
        ("resumed", "perhaps"),
        ("relation", "records"),
        ("agnets", "a:1"),
    ],
)
def test_an_option_that_is_not_right_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        parse_options({"agents": "a:1", name: value})


@pytest.mark.parametrize("given", [{}, {"agents": " , "}])
def test_without_an_agent_it_says_what_is_missing(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="needs the option agents"):
        parse_options(given)


def test_an_address_file_is_read_at_every_look(tmp_path: Path) -> None:
    file = tmp_path / "address"
    options = parse_options({"agents": "a:1", "address_file": str(file)})
    assert options.addresses() == ("a:1",)
    file.write_text("")
    assert options.addresses() == ("a:1",)
    file.write_text("b:2\n")
    assert options.addresses() == ("a:1", "b:2")
