"""What a job serves about its state: each message comes back as it was sent, whatever the names in it."""

import json
from collections.abc import Iterator
from dataclasses import fields
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import (
    PARTITIONS_PATH,
    PartitionDetail,
    PartitionPage,
    PartitionRow,
    RetentionPage,
    TransactionPage,
    path_of_partition,
)
from streaming.broker.protocol.status_json import Cost, ProblemPage, Status
from streaming.errors import AgentError
from tests.protocol.built import NAMES, built
from tests.tables import each_row

MESSAGES = (Cost, PartitionDetail, PartitionPage, ProblemPage, RetentionPage, Status, TransactionPage)


@pytest.mark.parametrize("kind", MESSAGES)
@given(st.data())
def test_a_message_comes_back_as_it_was(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(built(kind))
    assert kind.decode(message.encode()) == message


def test_what_a_later_version_says_more_is_ignored_and_what_an_earlier_one_does_not_say_is_not_known() -> None:
    page_fields = {"at_ms": 1, "total": 1, "matched": 1, "offset": 0, "sort": "topic", "order": "asc", "later": []}
    row = {"broker": 1, "topic": "t", "partition": 3, "later": {}}
    page = PartitionPage.decode(json.dumps(page_fields | {"rows": [row]}).encode())
    assert (page.rows[0].size_bytes, page.rows[0].bytes_rate, page.rows[0].retention_blocked) == (-1, -1.0, "")


def test_what_is_not_known_is_null_and_what_is_required_is_as_it_is() -> None:
    row = PartitionRow(broker=-1, topic="", partition=0, size_bytes=0, bytes_rate=-1.0, rates=[-1.0, 0.0, 2.5])
    found = json.loads(row.encode())
    assert {name: found[name] for name in ("broker", "topic", "partition", "size_bytes")} == {
        "broker": -1,
        "topic": "",
        "partition": 0,
        "size_bytes": 0,
    }
    assert (found["bytes_rate"], found["last_append_ms"], found["retention_blocked"], found["rates"]) == (
        None,
        None,
        None,
        [None, 0.0, 2.5],
    )
    assert PartitionRow.decode(row.encode()) == row


@given(st.data())
@pytest.mark.parametrize("kind", MESSAGES)
def test_no_field_that_may_be_left_out_says_that_it_is_not_known_by_a_value(kind: type[Message], data: st.DataObject) -> None:
    def optional(value: Message) -> Iterator[object]:
        shown = json.loads(value.encode())
        for each in fields(value):
            if each.default == -1 or each.default == "":
                yield shown[each.name]
            held = getattr(value, each.name)
            for inner in held if isinstance(held, list) else [held]:
                yield from optional(inner) if isinstance(inner, Message) else ()

    assert not {-1, ""} & set(optional(data.draw(built(kind))))


@pytest.mark.parametrize("kind", MESSAGES)
def test_no_time_is_in_seconds(kind: type[Message]) -> None:
    assert not [each.name for each in fields(kind) if "seconds" in each.name or "timestamp" in each.name]


@each_row("kind", MESSAGES)
@each_row("data", [b"", b"[]", b"{}", b'"text"', b"<html>"])
def test_what_is_no_such_message_is_refused(kind: type[Message], data: bytes) -> None:
    if kind is Cost and data == b"{}":
        data = b'{"metrics": 5}'
    with pytest.raises(AgentError, match=f"not a message of kind {kind.__name__}"):
        kind.decode(data)


@given(NAMES, st.integers(0, 1 << 31))
def test_the_path_of_a_partition_holds_its_topic_whatever_is_in_it(topic: str, partition: int) -> None:
    path = urlsplit(path_of_partition(topic, partition)).path
    found, number = path.removeprefix(f"{PARTITIONS_PATH}/").split("/")
    assert (unquote(found), int(number)) == (topic, partition)
