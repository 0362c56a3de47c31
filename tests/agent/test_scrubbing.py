"""What an agent reports of its scrub: all counts, and the worst places by name."""

from pathlib import Path

from streaming.broker.agent.parts import MOST_NAMED, scrub_statuses
from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.protocol.status_messages import CorruptBatch, CorruptLog, ScrubStatus, UnreadableFile
from streaming.broker.scrub.scrub_progress import FoundSegment
from streaming.broker.scrub.threads import PassProgress, ScrubReport
from streaming.kafka.scan.soundness import Damage, Fault

KEY = SegmentKey(5, 1000, 1_700_000_000_000, 2049, 77)


def status(*found: FoundSegment, waiting: float = 0.0) -> ScrubStatus:
    progress = PassProgress(began_ms=5, ended_ms=3, logs=10, logs_checked=4, checked=999, segments=found)
    (made,) = scrub_statuses([ScrubReport(LogDir(Path("/d"), 1, "c", "i"), progress, "/d/t-0/5.log" if waiting else "", waiting)])
    return made


def damaged(name: str, *positions: int, batches: int = 0) -> FoundSegment:
    damages = tuple(Damage(Fault.CRC, position, position + 1) for position in positions)
    return FoundSegment(Path(f"/d/{name}/5.log"), KEY, damages, batches or len(damages))


def test_places_and_logs_are_counted_and_the_first_place_of_each_segment_is_named_first() -> None:
    made = status(damaged("a-0", 1, 2, batches=70), damaged("b-7", 3), FoundSegment(Path("/d/c-0/5.log"), KEY, error="I/O error"))
    assert (made.corrupt, made.unreadable) == (71, 1)
    assert made.corrupt_batches == [
        CorruptBatch("a", 0, "/d/a-0/5.log", 1, 2, "crc"),
        CorruptBatch("b", 7, "/d/b-7/5.log", 3, 4, "crc"),
        CorruptBatch("a", 0, "/d/a-0/5.log", 2, 3, "crc"),
    ]
    assert made.corrupt_logs == [CorruptLog("a", 0, 70), CorruptLog("b", 7, 1)]
    assert made.unreadable_files == [UnreadableFile("/d/c-0/5.log", "I/O error")]
    assert (made.broker, made.log_dir, made.began_ms, made.ended_ms, made.logs, made.logs_checked, made.checked) == (
        1,
        "/d",
        5,
        3,
        10,
        4,
        999,
    )


def test_of_very_many_the_worst_are_named_and_all_are_counted() -> None:
    made = status(*(damaged(f"t-{number}", 1, batches=number + 1) for number in range(200)))
    assert made.corrupt == sum(range(1, 201))
    assert [each.partition for each in made.corrupt_logs] == list(range(199, 199 - MOST_NAMED, -1))
    assert len(made.corrupt_batches) == MOST_NAMED


def test_a_call_that_is_only_slow_is_not_reported() -> None:
    assert (status(waiting=1.0).waits_at, status(waiting=7.23).waits_at, status(waiting=7.23).waits_seconds) == ("", "/d/t-0/5.log", 7.2)


def test_a_status_is_read_as_it_was_written() -> None:
    made = status(damaged("a-0", 1), waiting=9.0)
    assert ScrubStatus.decode(made.encode()) == made
