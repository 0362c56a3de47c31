"""What an agent says of a log comes back as it was."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.facts import Facts, decode, decode_segments
from streaming.rows import SEGMENTS

longs = st.integers(-1, 2**62)
brokers = st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
segments = st.lists(st.tuples(longs, longs, longs, longs), max_size=5).map(lambda rows: np.array(rows, SEGMENTS))
facts = st.builds(
    Facts,
    segments=segments,
    local_log_start_offset=longs,
    oldest_timestamp=longs,
    active_first_timestamp=longs,
    active_created_ms=longs,
    cleaner_checkpoint=longs,
    replicas=brokers,
    isr=brokers,
    adding_replicas=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    leader_metadata_version=st.integers(-1, 100),
    configs=st.text(),
)


@given(facts)
def test_what_is_written_is_read(found: Facts) -> None:
    again = decode(found.encode())
    assert (again.segments == found.segments).all()
    assert (decode_segments(found.encode()) == found.segments).all()
    names = [each.name for each in fields(Facts) if each.name != "segments"]
    assert [getattr(again, name) for name in names] == [getattr(found, name) for name in names]


def test_another_version_is_refused() -> None:
    with pytest.raises(FormatError, match="of another version"):
        decode(b"\x09" + Facts().encode()[1:])


def test_what_an_agent_of_the_release_before_says_is_read() -> None:
    rows = np.array([(0, 100, 5, 6)], SEGMENTS)
    rest = b'[3,4,5,6,[1,2],[1],"{}"]'
    found = decode(b"\x01" + len(rest).to_bytes(4, "little") + rest + rows.tobytes())
    assert (found.segments == rows).all()
    assert (found.local_log_start_offset, found.oldest_timestamp, found.active_first_timestamp, found.cleaner_checkpoint) == (3, 4, 5, 6)
    assert (found.replicas, found.isr, found.configs, found.leader_metadata_version) == ((1, 2), (1,), '{"topic":{}}', -1)


def test_what_a_later_agent_says_besides_is_passed_over() -> None:
    rest = b'{"isr":[1],"moons":3}'
    assert decode(b"\x02" + len(rest).to_bytes(4, "little") + rest).isr == (1,)
