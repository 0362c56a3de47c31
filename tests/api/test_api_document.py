"""docs/api.md names every path, the JSON Schema every field, and no other; and what is answered is as they say."""

import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.generators.api_reference import ANSWERS, EVERY, OF_COMMANDS, kinds_of, meanings, schema
from streaming.broker.protocol.disk_json import DiskAnswer
from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import PartitionPage, PartitionRow, RetentionPage, TransactionPage
from streaming.broker.protocol.status_json import DoctorPage, ProblemPage
from tests.protocol.built import built
from tests.tables import each_row

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "api.md").read_text()
MESSAGES = sorted({each for kind in EVERY for each in kinds_of(kind)}, key=lambda kind: kind.__name__)
LISTS = (ProblemPage, PartitionPage, TransactionPage, RetentionPage, DiskAnswer, DoctorPage)


WHOLE = schema()


def checked(answer: object, place: str) -> None:
    """Hold an answer, as JSON has it, against the schema of its path or its command."""
    paths, commands = WHOLE["paths"], WHOLE["commands"]
    assert isinstance(paths, dict)
    assert isinstance(commands, dict)
    jsonschema.Draft202012Validator({"$defs": WHOLE["$defs"], **(paths | commands)[place]}).validate(answer)


def test_every_path_is_there_with_its_message() -> None:
    rows = re.findall(r"^\| `(/api/v1/[^`]+)` \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert dict(rows) == {path: kind.__name__ for path, kind in ANSWERS.items()}


@each_row("kind", MESSAGES)
def test_every_field_of_a_message_has_a_meaning_and_there_is_no_other(kind: type[PublicMessage]) -> None:
    found = meanings(kind)
    assert sorted(found) == sorted(each.name for each in dataclasses.fields(kind))
    assert all(found.values())


def test_the_schema_is_that_which_the_declarations_make() -> None:
    assert json.loads((DOCS / "api.schema.json").read_text()) == schema()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@settings(max_examples=8, deadline=None)
@pytest.mark.parametrize("place", [*ANSWERS, *OF_COMMANDS])
@given(data=st.data())
def test_every_answer_is_as_the_schema_says(place: str, data: st.DataObject) -> None:
    message = data.draw(built((ANSWERS | OF_COMMANDS)[place]))
    checked(json.loads(message.encode()), place)


@pytest.mark.parametrize(
    ("field", "value"), [("size_bytes", "7"), ("size_bytes", 1.5), ("retention_blocked", 3), ("rates", [None, "x"]), ("partition", None)]
)
def test_another_answer_is_not(field: str, value: object) -> None:
    unknown = {each.name: False if each.default is False else None for each in dataclasses.fields(PartitionRow)}
    row = unknown | {"broker": 1, "topic": "t", "partition": 0, "rates": []}
    page = {"at_ms": 1, "version": "1", "doubts": [], "total": 1, "matched": 1, "offset": 0, "sort": "topic", "order": "asc", "away": []}
    checked(page | {"rows": [row]}, "/api/v1/partitions")
    with pytest.raises(jsonschema.ValidationError):
        checked(page | {"rows": [row | {field: value}]}, "/api/v1/partitions")


@each_row("kind", LISTS)
def test_every_list_says_as_of_when_who_says_it_and_what_cannot_be_reported(kind: type[PublicMessage]) -> None:
    assert {"at_ms", "version", "doubts", "rows"} <= {each.name for each in dataclasses.fields(kind)}
