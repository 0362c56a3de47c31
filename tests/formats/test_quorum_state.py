"""What a node remembers of the quorum's elections."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.checkpoint_files import QuorumState, parse_quorum_state
from tests.tables import each_row

STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
DYNAMIC = b'{"leaderId":-1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}'


def test_both_versions() -> None:
    assert parse_quorum_state(STATIC) == QuorumState(
        version=0, leader_id=1, leader_epoch=3, voted_id=-1, voted_directory_id=None, voters=(1, 2)
    )
    assert parse_quorum_state(DYNAMIC) == QuorumState(
        version=1, leader_id=-1, leader_epoch=3, voted_id=2, voted_directory_id="AAECAwQFBgcICQoLDA0ODw", voters=()
    )


@each_row(
    ("data", "what"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "data_version of the quorum state is None"),
        (DYNAMIC.replace(b'"data_version":1', b'"data_version":2'), "version 2 is not known"),
        (DYNAMIC.replace(b'"leaderEpoch":3', b'"leaderEpoch":true'), "leaderEpoch of the quorum state is True"),
        (DYNAMIC.replace(b'"AAECAwQFBgcICQoLDA0ODw"', b"7"), "not a UUID"),
        (DYNAMIC.replace(b"AAECAwQFBgcICQoLDA0ODw", b"short"), "not a UUID"),
        (STATIC.replace(b'[{"voterId":1},{"voterId":2}]', b"7"), "currentVoters"),
        (STATIC.replace(b'{"voterId":2}', b"2"), "voterId"),
    ],
)
def test_anything_else_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        parse_quorum_state(data)


def test_a_part_of_the_file_is_refused() -> None:
    for length in range(len(DYNAMIC)):
        with pytest.raises(FormatError):
            parse_quorum_state(DYNAMIC[:length])


@given(st.binary(max_size=60), st.integers(0, 120))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, at: int) -> None:
    for data in (garbage, DYNAMIC[:at] + garbage + DYNAMIC[at + len(garbage) :]):
        with suppress(FormatError):
            parse_quorum_state(data)
