"""What is said about groups that do not go on, held against what Kafka's clients and tools know of them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupFinding
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.group_oracle import reported_by_tool
from tests.broker.install import KAFKA_VERSION
from tests.broker.lab import Commit
from tests.group_answers import detailed
from tests.recorded.recordings import Replayed, replay
from tests.recorded.worlds.why import STOPPED_SECONDS


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Groups that stand still, and the same groups resolved."""
    return replay("why", KAFKA_VERSION, tmp_path_factory.mktemp("why"))


def why(replayed: Replayed, state: str, group: str, at_ms: int = 0) -> tuple[GroupDetail, Sequence[GroupFinding]]:
    """What the disk showed of a group, when it was kept or at another moment."""
    disk = replayed.disk(state)
    at_ms = at_ms or disk.now_ms
    settings = Settings(group_stopped_after=timedelta(seconds=STOPPED_SECONDS), server_properties=disk.properties)
    answer = detailed(read_groups(open_log_dirs(disk.log_dirs), [group], settings, at_ms))
    assert (answer.missing, answer.doubts) == ((), ())
    (found,) = answer.groups
    return found, [each for each in found.findings if each.verdict != "fine"]


def test_a_group_that_an_open_transaction_holds_up(replayed: Replayed) -> None:
    _, (verdict,) = why(replayed, "standing", "held")
    assert verdict.verdict == "held"
    assert 'transactional id "the holder"' in verdict.text
    assert "5 offsets from 5 on cannot be read" in verdict.text
    assert "its producer ends the transaction, or its coordinator does" in verdict.no_command
    found, verdicts = why(replayed, "resolved", "held")
    assert (found.partitions[0].held, found.partitions[0].lag_records_read_committed) == (False, 5)
    assert [each.verdict for each in verdicts] == ["stopped"], "it may read on, and does not"


def test_a_group_with_nothing_but_markers_left(replayed: Replayed) -> None:
    _, (verdict,) = why(replayed, "standing", "markers")
    assert (verdict.verdict, verdict.text) == (
        "only_markers",
        "nothing to do: the last 4 offsets are only markers, aborted or compacted records",
    )
    assert reported_by_tool(replayed.text("groups"))["markers", "markers", 0] == (3, 7, 4)  # what Kafka's own tool makes of it


def test_a_group_that_has_stopped_although_it_has_a_member_and_a_record_to_read(replayed: Replayed) -> None:
    """Since its first commit of that offset, whatever was repeated since."""
    found, (verdict,) = why(replayed, "standing", "stopped")
    clock = replayed.json("clock")
    assert verdict.verdict == "stopped"
    assert clock["before"] <= found.partitions[0].stopped_since_ms <= clock["after"]
    assert (found.summary.type, found.summary.state, found.summary.members) == ("Classic", "Stable", 1)
    assert why(replayed, "resolved", "stopped", clock["left"])[1] == [], "it has just committed another offset"


@pytest.mark.parametrize(("group", "type_"), [("left-classic", "Classic"), ("left-consumer", "Consumer")])
def test_a_group_whose_members_have_left(replayed: Replayed, group: str, type_: str) -> None:
    found, _ = why(replayed, "standing", group)
    assert (found.summary.type, found.summary.state, found.summary.members) == (type_, "Stable", 1)
    found, verdicts = why(replayed, "resolved", group)
    assert (found.summary.state, found.summary.members) == ("Empty", 0)
    assert "no_members" in [each.verdict for each in verdicts]
    assert replayed.json("clock")["left"] <= found.summary.state_ms <= replayed.disk("resolved").now_ms


def test_a_share_group_has_left_what_its_coordinator_says(replayed: Replayed) -> None:
    (reported,) = [each for each in (Commit(*row) for row in replayed.json("commits")) if each.group == "shared"]
    found, _ = why(replayed, "standing", "shared")
    (of,) = found.partitions
    assert (of.topic, of.committed, of.lag_records_read_uncommitted) == ("shared", reported.offset, reported.lag)
    assert (found.summary.type, found.summary.members, reported.lag > 0) == ("Share", 1, True)
