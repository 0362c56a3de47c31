"""What an agent answers of an offset that was deleted after the job looked at its log."""

from typing import Any

from streaming.cluster.consumers.group_lag import LagReason
from tests.consumers.group_agents import GROUP, Records, Row
from tests.consumers.group_world import GroupJob, world
from tests.worlds.retention import facts

KNOWN = '{"static":{},"topic":{"retention.ms":"3600000"}}'
TIERED = '{"static":{},"topic":{"remote.storage.enable":"true"}}'
ASSUMED = ""


class Deleted(Records):
    """A log that begins with a later segment than the job knows."""

    begin = 4
    segment = 4

    def position(self, offset: int, upto: int, *, reads_uncommitted: bool = False) -> Row:
        found = super().position(offset, upto, reads_uncommitted=reads_uncommitted)
        return found if offset >= self.begin else found | {"state": "BELOW", "next_segment": self.segment, "next_offset": -1}


def deleted(configs: str | None, *, segment: int = 4, **values: Any) -> GroupJob:
    packed = None if configs is None else facts((0, 500, 10), (4, 300, 10), configs=configs)
    job = world(facts=packed, log_start_offset=0, **values)
    log = Deleted(["data"] * 10)
    log.segment = segment
    job.agents["a1"].logs["orders", 0] = log
    job.play("1")
    return job


def verdict(job: GroupJob) -> tuple[str, int, str]:
    one = job.one()
    return one.verdict, one.log_start, one.unknown


def test_what_was_deleted_since_the_job_looked_is_lost_and_not_in_remote_storage() -> None:
    job = deleted(KNOWN)
    log = job.agents["a1"].logs["orders", 0]
    job.agents["a1"].logs["orders", 0] = Records(["data"] * 10)
    job.agents["a1"].groups_ = [GROUP | {"members": 0, "state": "Empty"}]
    job.play("+0")
    job.agents["a1"].logs["orders", 0] = log
    job.play("2")
    snapshot = job.round(1)
    assert verdict(job) == ("lost", 4, str(LagReason.FILLING))
    assert snapshot.found.lags.below.tolist() == [2]
    assert job.round(1).found.lags.below.tolist() == [2]
    assert verdict(job) == ("lost", 4, ""), "the rest is asked for where the log begins, though its agent has not reported that yet"
    job.put(end=10, log_start_offset=4, facts=facts((4, 300, 10), configs=KNOWN))
    job.play("+1")
    assert verdict(job) == ("lost", 4, "")
    assert job.page()["group_lost_records_total{g,orders}"] == 2


def test_what_an_earlier_agent_does_not_say_or_is_not_known_waits_for_the_next_round() -> None:
    for job in (deleted(KNOWN, segment=-1), deleted(ASSUMED), deleted(None)):
        job.play("+0")
        assert verdict(job) == ("unknown", 0, str(LagReason.FILLING))


def test_only_where_the_topic_has_remote_storage_the_record_may_be_there() -> None:
    job = deleted(TIERED)
    job.play("+0")
    assert verdict(job) == ("unknown", 0, str(LagReason.REMOTE))
