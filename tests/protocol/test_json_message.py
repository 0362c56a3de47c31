"""Messages between agents and those that ask them."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.cluster_messages import Led
from streaming.broker.protocol.consumer_messages import Plan, PlanRequest, Range, Register
from streaming.broker.protocol.excerpt_messages import Excerpt, Excerpts, ExcerptsRequest, ScanEnd, ScanRequest, UnavailableDir, UnreadPart
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import MOST_VALUES
from streaming.broker.protocol.status_messages import BlockedFile, BrokerStatus, LogDirStatus, Status
from streaming.errors import AgentError
from tests.protocol.built import JSON, built
from tests.tables import each_row

ABOUT_EXCERPTS = [Excerpt, ExcerptsRequest, Excerpts, UnavailableDir, ScanRequest, UnreadPart, ScanEnd]
KINDS = [
    Register,
    Status,
    LogDirStatus,
    BrokerStatus,
    Led,
    PlanRequest,
    Plan,
    Range,
    Excerpt,
    ExcerptsRequest,
    Excerpts,
    ScanRequest,
    UnreadPart,
    ScanEnd,
]


def concrete(kind: type[Message]) -> Iterator[type[Message]]:
    """All kinds of messages."""
    for each in kind.__subclasses__():
        yield each
        yield from concrete(each)


_KINDS = {each.__name__: each for each in concrete(Message) if each.__module__.startswith("streaming.broker.protocol.")}
EVERY_KIND = st.sampled_from([kind for _, kind in sorted(_KINDS.items())])
REGISTER = {"consumer": "job", "start_from": "latest", "resumed": True}


@given(st.one_of(*map(built, KINDS)))
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert type(message).decode(message.encode()) == message


@given(kind=EVERY_KIND, data=st.data())
def test_a_message_with_any_other_value_is_read_with_values_of_its_types_or_refused(kind: type[Message], data: st.DataObject) -> None:
    fields = json.loads(data.draw(built(kind)).encode())
    for name in data.draw(st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=3)) if fields else ():
        fields[name] = data.draw(JSON)
    with suppress(AgentError):
        found = kind.decode(json.dumps(fields).encode())
        assert kind.decode(found.encode()) == found
        repr(found).encode()  # a text that can be written anywhere


@given(EVERY_KIND, st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_message_or_refused(kind: type[Message], data: bytes) -> None:
    with suppress(AgentError):
        kind.decode(data)


@each_row(
    ("fields", "why"),
    [
        ({"protocol": True}, "protocol: True is no integer"),
        ({"protocol": 3.0}, "protocol: 3.0 is no integer"),
        ({"protocol": 1 << 63}, "protocol: 9223372036854775808 is not between"),
        ({"protocol": None}, "protocol: None is no integer"),
        ({"resumed": 1}, "resumed: 1 is neither true nor false"),
        ({"consumer": 7}, "consumer: 7 is no text"),
        ({"consumer": "j" * 1_001}, "consumer: a text of 1001 characters, and not of 0 to 1000"),
        ({"consumer": ["job"]}, r"consumer: \['job'\] is no text"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_its_field(fields: dict[str, object], why: str) -> None:
    with pytest.raises(AgentError, match=f"not a message of kind Register: .*{why}"):
        Register.decode(json.dumps(REGISTER | fields).encode())


@each_row(
    "data",
    [
        b"[" * 100_000,  # deeper than anything is read
        b'{"consumer": "job", "start_from": "latest", "resumed": true, "mood": NaN}',
        b'{"consumer": "job", "start_from": "latest", "resumed": true, "protocol": ' + b"9" * 5_000 + b"}",
        b'{"consumer": "job", "start_from": "latest", "resumed": true, "mood": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"mood": [' + b"[]," * MOST_VALUES + b"[]]}",
    ],
)
def test_what_would_be_read_for_ever_or_into_too_much_is_refused(data: bytes) -> None:
    with pytest.raises(AgentError, match="not a message of kind Register"):
        Register.decode(data)


@each_row("number", ["NaN", "-Infinity", "1e999", "9" * 400, "true", '"1"'])
def test_a_number_is_finite(number: str) -> None:
    with pytest.raises(AgentError, match=r"not a message of kind BlockedFile"):
        BlockedFile.decode(b'{"broker": 1, "log_dir": "/a", "path": "/a/b", "seconds": %s}' % number.encode())


def test_a_text_with_half_a_pair_can_be_written_after_it_is_read() -> None:
    assert BlockedFile.decode(b'{"broker": 1, "log_dir": "/\\udcff", "path": "\\ud83d\\ude00", "seconds": 1}') == BlockedFile(
        1, "/\ufffd", "\U0001f600", 1.0
    )


def test_an_error_in_a_message_inside_names_the_way_to_it() -> None:
    with pytest.raises(AgentError, match=r"excerpts: partition: 'x' is no integer"):
        Excerpts.decode(
            b'{"last": true, "excerpts": [{"broker": 1, "log_dir": "/a", "topic": "t", "partition": "x", "topic_id": "", "segment": 0, '
            b'"begin": 0, "end": 1, "bytes": 1}]}'
        )


def test_a_field_of_a_later_version_is_passed_over() -> None:
    reported = b'{"consumer": "job", "start_from": "latest", "resumed": true, "protocol": 7, "mood": "fine"}'
    assert Register.decode(reported) == Register("job", "latest", resumed=True, protocol=7)


@each_row("data", [b"", b"not JSON", b"[1]", b"7", b"{}", b'{"consumer": "job"}'])
def test_what_is_no_such_message_is_an_error_that_shows_it(data: bytes) -> None:
    with pytest.raises(AgentError, match="not a message of kind Register"):
        Register.decode(data)


def test_a_broken_list_of_excerpts_is_an_error() -> None:
    with pytest.raises(AgentError, match="not a message of kind Excerpts"):
        Excerpts.decode(b'{"last": true, "excerpts": [{"broker": 1}]}')
