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
    cleaner_checkpoint=longs,
    replicas=brokers,
    isr=brokers,
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
