"""How far a job that starts is: in steps, in bytes, and for how long."""

import pytest

from streaming.cluster.verdicts.first_lines import start_sentence
from streaming.cluster.view.taillag import ReadAgent, StartMeter, StartProgress, StartStep

MIB = 1 << 20
READ = ReadAgent(unread_bytes=0, catching_up=False)


def reading(unread_bytes: int) -> ReadAgent:
    return ReadAgent(unread_bytes=unread_bytes, catching_up=True)


def at_step(meter: StartMeter, *agents: ReadAgent, at: float, counted: int = 0, published: int = 0, querying: bool = False) -> str:
    meter.note(agents, {"a1": (counted, published)}, at, querying=querying)
    return start_sentence(meter.progress)


def test_a_start_from_the_first_answer_to_the_last_byte() -> None:
    meter = StartMeter()
    assert start_sentence(meter.progress) == "Starting: no agent has answered yet"
    assert at_step(meter, reading(-1), at=1) == "Starting Spark, which counts what is on the disks"
    assert at_step(meter, reading(190 * MIB), at=2) == "Reading the disks: 0 B of 190.0 MiB"
    assert at_step(meter, reading(152 * MIB), at=12, published=38 * MIB) == "Reading the disks: 20 %, 38.0 MiB of 190.0 MiB, 40s left"
    assert at_step(meter, READ, at=50, published=190 * MIB) == "Starting Spark, which counts what is on the disks: 190.0 MiB are read"
    waits = at_step(meter, READ, at=60, published=190 * MIB, querying=True)
    assert waits == "Counting what was on the disks: 0 B of 190.0 MiB"
    ends = at_step(meter, READ, at=63, published=190 * MIB, counted=171 * MIB, querying=True)
    assert ends == "Counting what was on the disks: 90 %, 171.0 MiB of 190.0 MiB, 1s left"


def test_what_a_journal_held_before_is_neither_read_nor_counted() -> None:
    meter = StartMeter()
    meter.met("a1", 500 * MIB)
    meter.note([reading(30 * MIB)], {"a1": (0, 510 * MIB)}, 1.0, querying=True)
    assert meter.progress == StartProgress(step=StartStep.READING, done_bytes=10 * MIB, all_bytes=40 * MIB)
    meter.note([READ], {"a1": (480 * MIB, 540 * MIB)}, 2.0, querying=True)
    assert meter.progress == StartProgress(
        step=StartStep.COUNTING, done_bytes=0, all_bytes=60 * MIB
    )  # 20 MiB have waited since the last run
    meter.met("a1", 5 * MIB)
    meter.note([READ], {"a1": (1 * MIB, 5 * MIB)}, 3.0, querying=True)
    assert (meter.progress.done_bytes, meter.progress.all_bytes) == (1 * MIB, 5 * MIB)  # of another journal


def test_nothing_is_claimed_of_what_an_earlier_agent_does_not_report() -> None:
    meter = StartMeter()
    assert at_step(meter, reading(-1), at=1, querying=True) == "Reading the disks"
    assert at_step(meter, reading(-1), at=2, published=3 * MIB, querying=True) == "Reading the disks: 3.0 MiB so far"
    assert at_step(StartMeter(), READ, at=1, querying=True) == "Counting what was on the disks"


def test_what_grows_meanwhile_makes_no_share_larger_than_the_whole() -> None:
    meter = StartMeter()
    meter.met("a1", 0)
    for at, (counted, published) in enumerate([(0, 10), (10, 12), (12, 12)]):
        meter.note([READ], {"a1": (counted, published)}, float(at), querying=True)
        assert meter.progress.done_bytes <= meter.progress.all_bytes
    assert meter.progress.left_s == pytest.approx(0.0)
