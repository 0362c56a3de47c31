"""The text files beside the segments."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.checkpoint_files import (
    CheckpointEntry,
    EpochEntry,
    changed_entries,
    parse_leader_epochs,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from tests.tables import each_row

ENTRIES = st.lists(
    st.builds(
        CheckpointEntry,
        st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**63 - 1),
    )
)
ALMOST_RIGHT = st.builds(
    lambda head, lines: "\n".join([head, *lines]).encode(),
    st.sampled_from(["0", "0\n1", "0\n2", "1\n1", ""]),
    st.lists(st.text("0123456789 ab-\t", max_size=12), max_size=3),
)


def test_an_offset_checkpoint_holds_its_entries() -> None:
    data = b"0\n2\nweird-name-3-A-0 1 60\n__transaction_state 3 9223372036854775807\n"
    assert parse_offset_checkpoint(data) == (
        CheckpointEntry("weird-name-3-A-0", 1, 60),
        CheckpointEntry("__transaction_state", 3, 2**63 - 1),
    )


@given(ENTRIES)
def test_an_offset_checkpoint_reads_back_what_was_written(entries: list[CheckpointEntry]) -> None:
    text = f"0\n{len(entries)}\n" + "".join(f"{e.topic} {e.partition} {e.offset}\n" for e in entries)
    assert parse_offset_checkpoint(text.encode()) == tuple(entries)


@given(ENTRIES)
def test_a_checkpoint_that_looks_as_it_is_written_is_understood_as_one_that_does_not(entries: list[CheckpointEntry]) -> None:
    text = f"0\n{len(entries)}\n" + "".join(f"{e.topic} {e.partition % 10**9} {e.offset % 10**18}\n" for e in entries)
    assert parse_offset_checkpoint(text.encode()) == parse_offset_checkpoint(text.replace(" ", "  ").encode())
    for wrong in (text + "a 0 1\n", text + "a 0\n", text + "a 0 1 2\n", text + "a 0 x\n", text.replace("0\n", "1\n", 1)):
        with pytest.raises(FormatError):
            parse_offset_checkpoint(wrong.encode())


@given(ENTRIES, st.data())
def test_what_changed_in_an_offset_checkpoint_is_what_parsing_all_of_it_shows(entries: list[CheckpointEntry], data: st.DataObject) -> None:
    before = {(e.topic, e.partition): e.offset for e in entries}
    now = {key: data.draw(st.integers(0, 2) | st.just(offset)) for key, offset in before.items()}
    texts = [f"0\n{len(each)}\n" + "".join(f"{t} {p} {offset}\n" for (t, p), offset in each.items()) for each in (before, now)]
    changed = changed_entries(texts[1].encode(), texts[0].encode())
    if changed is not None:
        assert before | {(e.topic, e.partition): e.offset for e in changed} == now
    assert (changed is not None) == (2 * sum(before[key] != now[key] for key in now) <= len(now) + 1)


@each_row(
    "data",
    [
        b"0\n4\na 0 1\nb 0 1\nc 0 1\ne 0 1\n",  # of other logs
        b"0\n4\na 0 1\nb 0 1\nc 0 1\nc 0 2\n",  # one of them twice
        b"0\n4\na 0 1\nb 0 1\nc 0 1\n\n",
        b"0\n4\na 0 1\nb 0 1\nc 0 1\n",
        b"0\n3\na 0 1\nb 0 1\nc 0 1\nd 0 1\n",
        b"1\n4\na 0 1\nb 0 1\nc 0 1\nd 0 1\n",
        b"0\n4\na 0 2\nb 0 2\nc 0 2\nd 0 2\n",  # nearly all of them
        b"",
    ],
)
def test_where_lines_have_not_just_other_offsets_all_of_a_checkpoint_has_to_be_parsed(data: bytes) -> None:
    assert changed_entries(data, b"0\n4\na 0 1\nb 0 1\nc 0 1\nd 0 1\n") is None


def test_a_changed_line_that_is_wrong_is_refused() -> None:
    with pytest.raises(FormatError):
        changed_entries(b"0\n2\na 0 1\nb 0 x\n", b"0\n2\na 0 1\nb 0 1\n")


@pytest.mark.parametrize("parse", [parse_offset_checkpoint, parse_leader_epochs])
def test_the_empty_file_that_a_broker_creates_holds_no_entries(parse) -> None:
    assert parse(b"") == ()


@each_row(
    ("data", "line"),
    [
        (b"1\n0\n", "line 1"),
        (b"x\n0\n", "line 1"),
        (b"0\n", "line 2"),
        (b"0\nmany\n", "line 2"),
        (b"0\n-1\n", "line 2"),
        (b"0\n2\na 0 1\n", "line 2"),
        (b"0\n0\na 0 1\n", "line 2"),
        (b"0\n1\na 0\n", "line 3"),
        (b"0\n2\na 0 1\nb 0 1 2\n", "line 4"),
        (b"0\n2\na 0 1\n\nb 0 1\n", "line 4"),
        (b"0\n1\na -1 1\n", "line 3"),
        (b"0\n1\na 2147483648 1\n", "line 3"),
        (b"0\n1\na 0 9223372036854775808\n", "line 3"),
        (b"0\n1\na 0 " + b"9" * 5000 + b"\n", "line 3"),
        (b"0\n1\na 0 \xd9\xa1\n", "line 3"),
    ],
)
def test_a_wrong_offset_checkpoint_is_refused_by_its_line(data: bytes, line: str) -> None:
    with pytest.raises(FormatError, match=f"^{line}:"):
        parse_offset_checkpoint(data)


def test_bytes_that_are_not_text_are_refused_by_their_position() -> None:
    with pytest.raises(FormatError, match="not text at position 4"):
        parse_offset_checkpoint(b"0\n1\n\xff 0 1\n")


def test_leader_epochs_come_in_the_order_of_the_file() -> None:
    assert parse_leader_epochs(b"0\n2\n0 0\n1 32\n") == (EpochEntry(0, 0), EpochEntry(1, 32))


def test_a_wrong_leader_epoch_line_is_refused() -> None:
    with pytest.raises(FormatError, match="line 4: expected 2 fields, found 3"):
        parse_leader_epochs(b"0\n2\n0 0\n1 3 2\n")


def test_the_topic_id_is_read_from_partition_metadata() -> None:
    assert parse_partition_metadata(b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw") == "AAECAwQFBgcICQoLDA0ODw"


@each_row(
    "data",
    [
        b"",
        b"version: 0",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD\xc3\xa9",
        b"version: 0\ntopic_id: AAECAwQF gcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\nmore",
    ],
)
def test_a_wrong_partition_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_partition_metadata(data)


@given(st.binary(max_size=60) | ALMOST_RIGHT)
@pytest.mark.parametrize("parse", [parse_offset_checkpoint, parse_leader_epochs, parse_partition_metadata])
def test_garbage_is_refused_and_nothing_else(parse, data: bytes) -> None:
    with suppress(FormatError):
        parse(data)
