"""Whatever the bytes: a parser returns, or raises a format error, and nothing else. ``make fuzz`` takes minutes over it."""

import contextlib
import inspect
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.kafka.formats
from streaming.errors import FormatError
from tests.dump.running import dumped
from tests.fuzz import seeds
from tests.fuzz.seeds import PARSERS, Parser, parsers_of

CUTS = st.integers(0, 1 << 20)
BYTES = st.binary(max_size=12)
EDITS = st.lists(st.tuples(CUTS, st.integers(0, 4), BYTES), min_size=1, max_size=6)
"""At a place so many bytes are replaced by others."""

ELSEWHERE = {"read_uvarint", "read_varint", "read_varlong"}  # a position in front of the bytes: the parsers above go through them
BY_ANOTHER = {"read_record_heads"}  # read_entry_times calls it with the batch that it has read
WITH_VALUES = {"parse_node_id", "read_key_type", "read_control_type"}  # told by parsers above
IN_A_HEAD = {"read_length", "read_size", "read_base_offset", "read_leader_epoch", "read_crc"}  # a number of a head that is there


def edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for position, length, new in edits:
        at = position % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    return data


@pytest.mark.parametrize("parser", PARSERS, ids=str)
@given(data=st.data(), edits=EDITS)
def test_damaged_bytes_are_understood_or_reported(parser: Parser, data: st.DataObject, edits: list[tuple[int, int, bytes]]) -> None:
    check(parser, edited(data.draw(st.sampled_from(parser.seeds)), edits))


@pytest.mark.parametrize("parser", PARSERS, ids=str)
@given(data=st.data(), flips=st.lists(st.tuples(CUTS, st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits_are_understood_or_reported(parser: Parser, data: st.DataObject, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(data.draw(st.sampled_from(parser.seeds)))
    for position, bit in flips if damaged else ():
        damaged[position % len(damaged)] ^= 1 << bit
    check(parser, bytes(damaged))


@pytest.mark.parametrize("parser", PARSERS, ids=str)
@given(data=st.data())
def test_a_beginning_is_understood_or_reported(parser: Parser, data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(parser.seeds))
    check(parser, seed[: data.draw(st.integers(0, len(seed)))])


@pytest.mark.parametrize("parser", PARSERS, ids=str)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_understood_or_reported(parser: Parser, data: bytes) -> None:
    check(parser, data)


def check(parser: Parser, data: bytes) -> None:
    with contextlib.suppress(FormatError):
        parser.parse(data)


def test_every_parser_is_among_them() -> None:
    source = inspect.getsource(seeds)
    assert {
        name for name in parsers_of(Path(streaming.kafka.formats.__file__).parent) if name not in source
    } <= ELSEWHERE | BY_ANOTHER | WITH_VALUES | IN_A_HEAD


NAMES = [f"{0:020}.{kind}" for kind in ("log", "index", "timeindex", "txnindex", "snapshot")]
NAMES += ["leader-epoch-checkpoint", "partition.metadata", "meta.properties", "quorum-state", f"{0:020}-{1:010}.checkpoint"]


@pytest.mark.parametrize("topic", ["t-0", "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0"])
@given(data=st.data(), edits=EDITS, records=st.booleans(), seed=st.integers(0, 2**32))
def test_a_dump_of_damaged_files_ends_and_shows(
    topic: str, data: st.DataObject, edits: list[tuple[int, int, bytes]], records: bool, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("fuzz") / topic
    directory.mkdir()
    known = [seed for parser in PARSERS for seed in parser.seeds]
    chosen = random.Random(seed)
    for name in NAMES:
        (directory / name).write_bytes(edited(chosen.choice(known), edits) if chosen.random() < 0.5 else chosen.choice(known))
    log = data.draw(st.sampled_from(next(parser for parser in PARSERS if parser.name == "entry").seeds))
    (directory / NAMES[0]).write_bytes(edited(log, edits))
    done = dumped(directory, *(directory / name for name in NAMES), format="json", records=records, verify=True)
    assert (done.status == 0) == (not done.findings)
    assert all(finding.what for finding in done.findings)
    assert all(row["kind"] for row in done.rows)
