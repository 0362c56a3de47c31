"""Consumers fetch ahead: what is deleted after they have fetched it is lost only when it is known that they do not have it any more."""

from typing import Any

from streaming.broker.protocol.group_json import GroupFinding
from tests.consumers.group_agents import GROUP
from tests.consumers.group_world import STOPPED_MS, GroupJob, restarted, world
from tests.tables import each_row

STOPPED = STOPPED_MS // 1000
READING = "0 +0 4 +2 8 +2 12 +2 16 +2 20 +2"
"""Two records a second, from a log of a thousand."""


def reading(script: str = "", **facts: Any) -> GroupJob:
    """A group with members reads two records a second."""
    job = world(end=1000)
    job.agents["a1"].groups_ = [GROUP | facts]
    job.play(f"{READING} {script}")
    return job


def lost(job: GroupJob) -> tuple[float, float, float]:
    """The totals of lost records and offsets, and what is in memory at most."""
    page = job.page()
    records, offsets = page["group_lost_records_total{g,orders}"], page["group_lost_offsets_total{g,orders}"]
    return records, offsets, page.get("group_buffered_records{g,orders}", 0)


def test_the_next_job_goes_on_with_what_is_perhaps_in_memory() -> None:
    for script, counts in (
        ("24@1015 +2 28 +2 32 +2 36 +2 402 +2", (362, 0, 198)),
        ("402@1015 +2", (0, 0, 198)),
        (f"+{STOPPED}", (580, 0, 0)),
    ):
        assert lost(restarted(reading("start=400 +2 start=600 +2"), script)) == counts, script


def test_of_what_was_deleted_before_the_first_look_nothing_is_counted() -> None:
    job = world(end=1000, log_start_offset=400)
    job.agents["a1"].groups_ = [GROUP]
    job.play("20@999 +2 24 +2 28 +2")
    assert lost(job) == (0, 0, 372)
    job.play("402 +2")
    assert lost(job) == (0, 0, 0)


def test_consumers_without_a_group_have_something_in_memory_as_long_as_their_commit_moves() -> None:
    job = world(end=1000)
    job.play(f"{READING} start=400 24 +2")
    assert lost(job) == (0, 0, 376)
    job.play(f"+{STOPPED}")
    assert lost(job) == (376, 0, 0)


def test_a_topic_that_is_made_anew_takes_with_it_what_was_deleted_of_the_one_before() -> None:
    job = reading("start=400 24 +2")
    job.put(end=30, log_start_offset=0)
    job.play("26 +2 28 +2")
    assert lost(job) == (0, 0, 0)


def said(job: GroupJob, verdict: str) -> GroupFinding | None:
    return next((each for each in job.about().findings if each.verdict == verdict), None)


def test_what_is_committed_below_the_log_start_was_read_from_memory() -> None:
    """The world of a reader that is slower than its producer: nothing that it reads is lost, however far it falls behind."""
    job = reading()
    for second in range(60):
        job.play(f"start={40 + 8 * second} {24 + 4 * second} +2")
        assert lost(job) == (0, 0, 16 + 4 * second)
    found = said(job, "buffered")
    assert found is not None
    assert "252 records are lost if they are restarted now" in found.text
    assert (found.command, said(job, "lost")) == ("", None)
    slower = said(job, "slower")
    assert slower is None or "nothing is read" not in slower.text
    assert job.one().consumed_rate > 1.5
    assert "group_last_loss_timestamp_seconds{g,orders}" not in job.page()


@each_row(
    ("what", "script", "counts"),
    [
        ("a reset goes on at the log start", "start=400 24 +2 28 +2 32 +2 402 +2", (366, 0, 0)),
        (
            "one that was fetched ahead of the reader goes on at the log start of then",
            "start=400 24 +2 start=600 28 +2 32 +2 402 +2",
            (366, 0, 198),
        ),
        ("the buffer is read through", "start=30 24 +2 28 +2 32 +2 36 +2", (0, 0, 0)),
        ("and deletion goes on meanwhile", "start=26 24 +2 start=34 28 +2 start=40 32 +2 36 +2 42 +2", (0, 0, 0)),
        ("nobody is there any more", "start=400 24 +2 empty +2", (376, 0, 0)),
        ("it stands for long", f"start=400 24 +2 +{STOPPED}", (376, 0, 0)),
        ("not so long yet", f"start=400 24 +2 +{STOPPED - 1}", (0, 0, 376)),
        ("it stood before the deletion", f"+{STOPPED} start=400 +2", (0, 0, 380)),
        ("more is deleted of one that stands", f"start=400 24 +2 +{STOPPED} start=500 +2", (476, 0, 0)),
        ("what is counted as lost is counted once", f"start=400 24 +2 +{STOPPED} 402 +2 406 +2", (376, 0, 0)),
        ("it jumps in the round of the deletion", "start=400 402 +2", (0, 379, 0)),
        ("its consumer was away for a minute", "start=90 24 +2 28 +2 32 +2*30 92 +2", (52, 0, 0)),
        (
            "small pieces go of one that fetches nothing ahead, once its pace is known",
            "start=40 24 +2 28 +2 42 +2 46 +2 50 +2 start=80 54 +2 82 +2 86 +2",
            (24, 0, 0),
        ),
        ("it is set back", "start=400 24 +2 20 +2", (0, 0, 380)),
        ("a crash may bring it back, though nobody has it", "crash=0 start=400 empty +2 +60", (0, 0, 0)),
        ("it has brought it back", "crash=0 start=400 empty +2 start=0 crash=-1 +2 +2", (0, 0, 0)),
        ("none can any more", "crash=0 start=400 empty +2 crash=-1 +2 +2", (380, 0, 0)),
        ("none can bring back the first of two deletions", "start=400 crash=0 +2 start=600 empty +2 crash=400 +2 +2", (380, 0, 0)),
        ("it has brought back the second", "start=400 crash=0 +2 start=600 crash=400 empty +2 start=400 crash=-1 +2", (380, 0, 0)),
        ("it has brought back a part, as a segment ends there", "crash=0 start=400 empty +2 start=300 crash=-1 +2 +2", (0, 280, 0)),
        ("a transaction that is open from before is perhaps aborted later", "open=30 start=400 empty +2", (0, 380, 0)),
        ("one that begins at the log start is not deleted", "open=400 start=400 empty +2", (380, 0, 0)),
        ("who has jumped there has left it out all the same", "crash=0 start=400 24 +2 28 +2 32 +2 402 +2", (366, 0, 0)),
    ],
)
def test_a_loss_is_counted_when_it_is_proven(what: str, script: str, counts: tuple[int, int, int]) -> None:
    job = reading()
    for word in script.split():
        if word == "empty":
            job.agents["a1"].groups_ = [GROUP | {"state": "Empty", "members": 0}]
            job.agents["a1"].edition = "c2"
        else:
            job.play(word)
    assert lost(job) == counts, what
