"""Answers about consumer groups over HTTP."""

import re
from http import HTTPStatus

import pytest

from streaming.metrics.export import EVERYTHING, Export
from streaming.metrics.group_snapshot import GroupBoard
from streaming.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, GroupSummary, path_of
from streaming.site.group_routes import GroupAnswers
from streaming.site.json_answers import JSON_TYPE
from streaming.web.messages import Answer, Request
from tests.job.group_world import GroupJob, world

NAMES = ["a/b", "billing", "g 1", "süß", "z\n"]


@pytest.fixture(scope="module")
def job() -> GroupJob:
    found = world()
    for name in NAMES:
        found.agents["a1"].commit(3, group=name)
    found.agents["a1"].commit(7, group="billing", partition=1)
    found.round()
    return found


def ask(job: GroupJob, path: str, query: str = "", *, export: Export = EVERYTHING) -> Answer:
    def details(name: str) -> GroupDetail | None:
        return GroupDetail(at_ms=1, summary=GroupSummary(group=name), partitions=[]) if name in NAMES else None

    answers = GroupAnswers(job.board, export, details)
    request = Request(path=path, query=query, client="c", user_agent="", accept="", gzip=False)
    return answers.answer(request, round(job.now * 1000))


def test_all_groups_are_listed_with_their_sums(job: GroupJob) -> None:
    answer = ask(job, GROUPS_PATH)
    assert (answer.status, answer.content_type) == (HTTPStatus.OK, JSON_TYPE)
    page = GroupPage.decode(answer.body)
    assert [each.group for each in page.groups] == sorted(NAMES)
    assert (page.total, page.next) == (len(NAMES), "")
    billing = page.groups[sorted(NAMES).index("billing")]
    assert (billing.partitions, billing.unknown, billing.lag_offsets, billing.type, billing.members) == (2, 1, 7, "Classic", -1)


def test_a_list_is_read_page_by_page(job: GroupJob) -> None:
    found: list[str] = []
    query = "limit=2"
    while query:
        page = GroupPage.decode(ask(job, GROUPS_PATH, query).body)
        assert len(page.groups) <= 2
        found += [each.group for each in page.groups]
        query = f"limit=2&after={path_of(page.next).rpartition('/')[2]}" if page.next else ""
    assert found == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_group_is_found_by_its_name_whatever_is_in_it(job: GroupJob, name: str) -> None:
    assert GroupDetail.decode(ask(job, path_of(name)).body).summary.group == name


@pytest.mark.parametrize("path", [path_of("other"), path_of(""), f"{GROUPS_PATH}/%ff"])
def test_a_group_that_is_not_there_is_not_found(job: GroupJob, path: str) -> None:
    assert ask(job, path).status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("limit", ["", "-1", "0", "000", "many", "²", "1001", "999999999999", "9" * 5000])
def test_a_limit_is_a_number(job: GroupJob, limit: str) -> None:
    answer = ask(job, GROUPS_PATH, f"limit={limit}")
    assert (answer.status, answer.body) == (HTTPStatus.BAD_REQUEST, b"limit is not a whole number from 1 to 1,000\n")


@pytest.mark.parametrize("limit", ["1", "0000000001", "0" * 5000 + "1"])
def test_a_number_may_begin_with_zeros(job: GroupJob, limit: str) -> None:
    assert len(GroupPage.decode(ask(job, GROUPS_PATH, f"limit={limit}").body).groups) == 1


def test_another_parameter_is_named(job: GroupJob) -> None:
    answer = ask(job, GROUPS_PATH, "sort=lag")
    assert (answer.status, answer.body) == (HTTPStatus.BAD_REQUEST, b"'sort' is no parameter here; there are after, limit\n")


def test_while_nothing_is_read_no_group_is_no_answer() -> None:
    empty = world()
    empty.round()
    request = Request(path=GROUPS_PATH, client="c", user_agent="", accept="", gzip=False)
    for ready, status in ((False, HTTPStatus.SERVICE_UNAVAILABLE), (True, HTTPStatus.OK)):
        answers = GroupAnswers(empty.board, EVERYTHING, lambda _: None, lambda: ready)  # noqa: B023 - called at once
        answer = answers.answer(request, round(empty.now * 1000))
        assert (answer.status, b"on its way" in answer.body) == (status, not ready)


def test_a_group_that_is_not_exported_is_not_answered(job: GroupJob) -> None:
    export = Export(exclude_consumers=re.compile("bill.*"))
    assert ask(job, path_of("billing"), export=export).status == HTTPStatus.NOT_FOUND
    assert "billing" not in [each.group for each in GroupPage.decode(ask(job, GROUPS_PATH, export=export).body).groups]


def test_before_the_first_round_nothing_is_known() -> None:
    answers = GroupAnswers(GroupBoard(), EVERYTHING, lambda _: None)
    request = Request(path=GROUPS_PATH, client="c", user_agent="", accept="", gzip=False)
    assert answers.answer(request, 0).status == HTTPStatus.SERVICE_UNAVAILABLE
