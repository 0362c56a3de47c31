"""A bit flips in segments of a real broker: what is counted stops there, and the place is the one that the scrub and dump --verify name."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.agent.next_batch import check_batch
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.positions import CountedLog, PositionState, count_log
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.walk import walk
from tests.builders import log_dir
from tests.commands import run_command
from tests.scrub.real import BY_TIME, CODECS, OLD_FORMATS, checked, copied, flip

HIGHEST = 1 << 40
FIELDS = {"the CRC itself": 17, "attributes": 22, "last offset delta": 26, "records count": 60, "payload": HEADER_BYTES + 3}


@dataclass(frozen=True, slots=True)
class Place:
    """A batch of one of the segments, by its number."""

    segment: int
    position: int
    base_offset: int
    last_offset: int
    size: int


def batches_of(path: Path) -> Batches:
    data = np.fromfile(path, np.uint8)
    return read_headers(data, walk(data, 0, len(data)).positions)


def places(directory: Path) -> Iterator[Place]:
    """The first, a middle and the last batch of the first, a middle and the last segment."""
    segments = list_segments(directory)
    for number in sorted({0, len(segments) // 2, len(segments) - 1}):
        batches = batches_of(segments[number].path)
        for item in sorted({0, len(batches) // 2, len(batches) - 1}):
            columns = (batches.positions, batches.base_offset, batches.last_offset, batches.size)
            yield Place(number, *(int(column[item]) for column in columns))


def counted(directory: Path, size: int = 8 << 20) -> CountedLog:
    return count_log(list_segments(directory), 0, window()[:size])


def state(log: CountedLog, offset: int) -> PositionState:
    return log.positions([offset], HIGHEST)[0].state


@pytest.mark.parametrize("source", [BY_TIME, CODECS], ids=["four segments", "every codec"])
@pytest.mark.parametrize("size", [8 << 20, 70], ids=["", "a window smaller than a batch"])
def test_nothing_is_counted_over_a_flipped_bit_and_its_batch_is_named(source: Path, size: int, tmp_path: Path) -> None:
    directory, wrong = copied(source, tmp_path), []
    bases = [segment.base_offset for segment in list_segments(directory)]
    end = counted(directory).end_offset
    for place in places(directory):
        path = list_segments(directory)[place.segment].path
        for name, at in FIELDS.items():
            flip(path, 8 * (place.position + at))
            log = counted(directory, size)
            damage = log.damage(0)
            cut = log.end_offset < end  # the last batch of all: nothing follows by which its end could be known
            after = bases[place.segment + 1] if place.segment + 1 < len(bases) else end
            answers = (
                damage.startswith(f"{path}: bad ") and damage.endswith(f" at position {place.position}"),
                cut or log.between(0, end) is None,
                cut or log.between(place.base_offset, end) is None,
                damage.startswith(f"{path}: bad CRC") or name not in ("the CRC itself", "payload"),
                place.segment == len(bases) - 1 or log.damage(after) == "",
                place.segment == len(bases) - 1 or log.between(after, end) is not None,
                checked_place(directory, place) == place.position,
                not check_batch(list_segments(directory), place.base_offset).sound,
            )
            if not all(answers):
                wrong.append((place, name, damage, answers))
            flip(path, 8 * (place.position + at))
    assert wrong == []
    assert counted(directory).damage(0) == ""


def checked_place(directory: Path, place: Place) -> int:
    """Where the scrub finds the first damage; it reads closed segments alone."""
    if place.segment == len(list_segments(directory)) - 1:
        return place.position
    return checked(directory, place.segment)[0].position


def test_after_a_damaged_batch_everything_is_counted(tmp_path: Path) -> None:
    directory = copied(BY_TIME, tmp_path)
    sound = counted(directory)
    place = next(iter(places(directory)))
    flip(list_segments(directory)[0].path, 8 * (place.position + HEADER_BYTES + 3))
    log = counted(directory)
    after, end = place.last_offset + 1, log.end_offset
    assert end == sound.end_offset
    assert [state(log, offset) for offset in (0, place.last_offset, after)] == [*[PositionState.DAMAGED] * 2, PositionState.KNOWN]
    assert log.between(after, end) == sound.between(after, end)
    assert log.damage(after) == ""


@pytest.mark.parametrize("source", OLD_FORMATS, ids=[path.name for path in OLD_FORMATS])
def test_a_flipped_bit_in_an_old_message_is_found(source: Path, tmp_path: Path) -> None:
    directory = copied(source, tmp_path)
    path = list_segments(directory)[0].path
    batches = batches_of(path)
    for item in (0, len(batches) // 2, len(batches) - 1):
        end = int(batches.positions[item] + batches.size[item])
        flip(path, 8 * (end - 1))
        assert f" at position {batches.positions[item]}" in counted(directory).damage(0)
        flip(path, 8 * (end - 1))
    assert counted(directory).damage(0) == ""


def test_a_base_offset_that_does_not_fit_is_damage_in_every_batch(tmp_path: Path) -> None:
    """No CRC covers it. The batch after it shows it, or the next segment."""
    directory = copied(BY_TIME, tmp_path)
    path = list_segments(directory)[1].path
    positions = batches_of(path).positions.tolist()
    for position, following in pairwise([*positions, -1]):
        flip(path, 8 * (position + 6))  # 256 offsets more, or some less
        damage = counted(directory).damage(0)
        assert damage.startswith(str(path))
        assert following < 0 or f"position {position}" in damage or f"position {following}" in damage
        flip(path, 8 * (position + 6))


@pytest.mark.parametrize("position", ["first", "middle", "last"])
@pytest.mark.parametrize("high_watermark", [True, False], ids=["", "without a high watermark"])
def test_the_command_has_no_number_of_it_and_says_where_and_what_to_do(position: str, high_watermark: bool, tmp_path: Path) -> None:
    directory = copied(CODECS, log_dir(tmp_path).path)
    end = counted(directory).end_offset
    if high_watermark:
        (directory.parent / "replication-offset-checkpoint").write_text(f"0\n1\nmixed-A 0 {end}\n")
    path = list_segments(directory)[-1].path
    batches = batches_of(path)
    item = {"first": 0, "middle": len(batches) // 2, "last": len(batches) - 1}[position]
    flip(path, 8 * int(batches.positions[item] + batches.size[item] - 1))
    done = run_command("count", "--log-dirs", str(directory.parent), "mixed-A")
    assert done.returncode == 4
    assert done.stdout.splitlines()[1].split() == ["mixed-A", "1", *"----"]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("- mixed-A-0"))
    assert f"is not counted: {path}: bad CRC: offsets {batches.base_offset[item]} to {batches.last_offset[item]} at position" in line
    assert f"`segtail dump --verify {directory}` lists all damage" in line
    verified = run_command("dump", "--verify", str(directory))
    assert verified.returncode == 1
    assert f"{path}: byte {batches.positions[item]}" in verified.stderr or f"{batches.positions[item]}" in verified.stderr


def test_damage_that_is_not_replicated_yet_takes_no_number_away(tmp_path: Path) -> None:
    directory = copied(CODECS, log_dir(tmp_path).path)
    path = list_segments(directory)[-1].path
    batches = batches_of(path)
    (directory.parent / "replication-offset-checkpoint").write_text(f"0\n1\nmixed-A 0 {batches.base_offset[-2]}\n")
    data = counted(directory).between(0, int(batches.base_offset[-2]))
    assert data is not None
    flip(path, 8 * int(batches.positions[-1] + batches.size[-1] - 1))
    done = run_command("count", "--log-dirs", str(directory.parent), "--by", "partition", "mixed-A")
    assert done.returncode == 4
    assert done.stdout.splitlines()[1].split()[:5] == ["mixed-A-0", "1", "0", str(batches.base_offset[-2]), str(data.data)]
    assert "- mixed-A-0 of broker 1 has damage after what is counted: " in done.stdout
