"""Messages between agents and those that ask them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import AgentError
from streaming.protocol.cluster_messages import Led
from streaming.protocol.consumer_messages import Committed, Plan, PlanRequest, Range, Register
from streaming.protocol.json_message import Message
from streaming.protocol.segment_list import Log, Logs
from streaming.protocol.status_messages import BrokerStatus, LogDirStatus, Status
from streaming.protocol.versions import PROTOCOL, UNNAMED
from tests.tables import each_row

KINDS = [Register, Status, LogDirStatus, BrokerStatus, Led, PlanRequest, Plan, Range, Committed, Log, Logs]

st.register_type_strategy(float, st.floats(allow_nan=False))  # which no message holds, and which equals nothing


@given(st.one_of(*(st.from_type(kind) for kind in KINDS)))
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert repr(type(message).decode(message.encode())) == repr(message)  # not a number equals nothing


def test_a_field_of_a_later_version_is_passed_over() -> None:
    told = b'{"consumer": "job", "start_from": "latest", "resumed": true, "protocol": 7, "mood": "fine"}'
    assert Register.decode(told) == Register("job", "latest", resumed=True, protocol=7)


def test_a_side_that_names_no_protocol_is_of_the_version_before_there_was_one() -> None:
    assert Register.decode(b'{"consumer": "job", "start_from": "latest", "resumed": true}').protocol == UNNAMED < PROTOCOL


@each_row("data", [b"", b"not JSON", b"[1]", b"7", b"{}", b'{"consumer": "job"}'])
def test_what_is_no_such_message_is_an_error_that_shows_it(data: bytes) -> None:
    with pytest.raises(AgentError, match="not a message of kind Register"):
        Register.decode(data)


def test_a_broken_list_of_logs_is_an_error() -> None:
    with pytest.raises(AgentError, match="not a message of kind Logs"):
        Logs.decode(b'{"logs": [{"broker": 1}]}')
