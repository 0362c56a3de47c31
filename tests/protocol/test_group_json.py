"""What a job serves about consumer groups."""

import json
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.group_json import (
    GROUPS_PATH,
    BatchCheck,
    GroupDetail,
    GroupPage,
    GroupPartition,
    GroupSummary,
    HoldingTransaction,
    PendingOffset,
    path_of,
)
from streaming.errors import AgentError
from tests.tables import each_row

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.builds(GroupSummary, group=NAMES, members=st.integers(-1, 5)), max_size=3))
def test_a_page_of_groups_comes_back_as_it_was(groups: list[GroupSummary]) -> None:
    page = GroupPage(at_ms=5, rows=groups, total=7, matched=3, offset=0, sort="group", order="asc", omitted=1)
    assert GroupPage.decode(page.encode()) == page


@each_row("batch", [None, BatchCheck(sound=False, error="crc", size=12)])
@each_row("held_by", [None, HoldingTransaction(producer_id=1, producer_epoch=2, first_offset=3, start_ms=4, last_append_ms=5)])
def test_a_group_comes_back_with_all_that_its_partitions_hold(held_by: HoldingTransaction | None, batch: BatchCheck | None) -> None:
    pending = [PendingOffset(producer_id=9, offset=8, coordinator=7)]
    partition = GroupPartition(topic="t", partition=0, held=True, held_by=held_by, pending=pending, batch=batch)
    group = GroupDetail(at_ms=5, summary=GroupSummary(group="g"), partitions=[partition], clients=["c"])
    assert GroupDetail.decode(group.encode()) == group


def test_what_a_later_version_says_more_is_ignored_and_what_an_earlier_one_does_not_say_is_not_known() -> None:
    fields = {"at_ms": 1, "summary": {"group": "g", "more": 1}, "partitions": [{"topic": "t", "partition": 3, "more": {}}], "more": []}
    group = GroupDetail.decode(json.dumps(fields).encode())
    assert group.partitions == [GroupPartition(topic="t", partition=3)]
    assert (group.summary.members, group.partitions[0].lag_offsets, group.partitions[0].held_by) == (-1, -1, None)


@pytest.mark.parametrize("held", ["text", 5, ["text"]])
def test_what_is_no_such_message_is_refused(held: object) -> None:
    with pytest.raises(AgentError, match="not a message of kind GroupDetail"):
        GroupDetail.decode(json.dumps({"at_ms": 1, "summary": held, "partitions": []}).encode())


@given(NAMES)
def test_the_path_of_a_group_holds_its_name_whatever_is_in_it(name: str) -> None:
    path = urlsplit(path_of(name)).path
    assert path.count("/") == path_of("").count("/")
    assert unquote(path.removeprefix(f"{GROUPS_PATH}/")) == name
