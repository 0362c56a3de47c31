"""The commands about consumer groups ask a job, and understand what it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from streaming.cli import job_groups
from streaming.cli.group_report import as_json
from streaming.cli.job_groups import ask
from streaming.job.group_details import GroupDetails
from streaming.metrics.export import EVERYTHING
from streaming.protocol.group_json import GROUPS_PATH, GroupPage, GroupSummary
from streaming.site.group_routes import GroupAnswers
from streaming.verdicts.group_verdicts import Bounds, Kind, judge, worst
from streaming.web.messages import Request
from tests.job.group_agents import GROUP, WAITING
from tests.job.group_world import STOPPED_MS, GroupJob, world
from tests.serving import answering
from tests.tables import each_row


@contextmanager
def serving(job: GroupJob) -> Iterator[str]:
    """The answers of a job over HTTP."""
    answers = GroupAnswers(
        job.board, EVERYTHING, GroupDetails(job.table, job.board, lambda: job.agents, lambda: job.now, redacted=False).of
    )

    def answer(path: str) -> tuple[int, bytes]:
        asked = urlsplit(path)
        request = Request(path=asked.path, query=asked.query, client="c", user_agent="", accept="", gzip=False)
        found = answers.answer(request, round(job.now * 1000))
        return found.status, found.body

    with answering(answer) as url:
        yield url


@each_row("name", ["g", "a/b", "süß ", "z\n\x1b", "%2F"])
def test_a_group_that_has_stopped_is_said_to_have_stopped_whatever_its_name(name: str) -> None:
    job = world()
    job.agents["a1"].commit(3, group=name, commit_ms=1_000_000)
    job.round()
    job.round(STOPPED_MS / 1000)
    with serving(job) as url:
        listed, named = ask(url, (), whole=False), ask(url, [name, "other"], whole=True)
    now_ms = round(job.now * 1000)
    (group,) = named.groups
    assert [each.summary.group for each in listed.groups] == [group.summary.group] == [name]
    assert worst(listed.groups[0], now_ms, Bounds()) is Kind.DAMAGED
    assert {each.kind for each in judge(group, now_ms, Bounds())} == {Kind.DAMAGED, Kind.STOPPED}  # its batch was checked
    assert named.missing == ("other",)


def test_a_group_may_be_in_a_coordinators_log_that_is_not_read_to_its_end() -> None:
    job = world()
    job.agents["a1"].coordinator = None
    job.round()
    with serving(job) as url:
        found = ask(url, ["g"], whole=True)
    (doubt,) = found.doubts
    assert found.missing == ("g",)
    assert doubt.endswith("not read to their end from a current replica: groups of theirs may be missing")


def test_a_group_that_reads_is_fine() -> None:
    job = world()
    job.agents["a1"].commit(10, commit_ms=900_000)
    job.agents["a1"].groups_ = [GROUP]
    job.round()
    with serving(job) as url:
        found = ask(url, ["g"], whole=True)
    (verdict,) = judge(found.groups[0], round(job.now * 1000), Bounds())
    assert (verdict.kind, found.groups[0].summary.members) == (Kind.FINE, 2)


def several() -> GroupJob:
    """A job with a group that has read all, one that is behind, and one that has only pending commits."""
    job = world()
    agent = job.agents["a1"]
    agent.commit(10, group="all")
    agent.commit(3, group="behind")
    agent.pending = [WAITING | {"group": "only pending"}]
    job.round()
    job.round(STOPPED_MS / 1000)
    return job


def test_a_list_shows_of_each_group_what_its_name_shows() -> None:
    job = several()
    with serving(job) as url:
        listed = ask(url, (), whole=True)
        named = ask(url, [each.summary.group for each in listed.groups], whole=True)
    assert [each.summary.group for each in listed.groups] == ["all", "behind", "only pending"]
    assert listed.groups == named.groups
    now_ms = round(job.now * 1000)
    assert [worst(each, now_ms, Bounds()) for each in named.groups] == [Kind.FINE, Kind.DAMAGED, Kind.PENDING]


def test_a_group_that_has_read_all_is_not_asked_for_unless_it_is_wanted_whole() -> None:
    with serving(several()) as url:
        listed = ask(url, (), whole=False)
    assert [len(each.partitions) for each in listed.groups] == [0, 1, 1]
    assert not listed.doubts


def test_a_list_of_which_groups_go_while_it_is_read_ends_with_its_last_page() -> None:
    """Each page says how many there are; with the last one fewer may have come, or more."""
    pages = {
        GROUPS_PATH: GroupPage(at_ms=1_000, groups=[GroupSummary(group="a")], total=3, next="a"),
        f"{GROUPS_PATH}?after=a": GroupPage(at_ms=1_000, groups=[GroupSummary(group="b")], total=3),
    }
    with answering(lambda path: (200, pages[path].encode())) as url:
        listed = ask(url, (), whole=False)
    assert [each.summary.group for each in listed.groups] == ["a", "b"]


@pytest.mark.parametrize(("limit", "value"), [("_MOST_DETAILS", 1), ("_MOST_SECONDS", 0.0)])
def test_groups_that_are_judged_by_their_sums_alone_are_told(monkeypatch: pytest.MonkeyPatch, limit: str, value: float) -> None:
    monkeypatch.setattr(job_groups, limit, value)
    job = several()
    with serving(job) as url:
        listed = ask(url, (), whole=True)
    left = 2 - int(value)
    assert listed.doubts == (
        f"{'1 group is' if left == 1 else '2 groups are'} judged by sums alone, because there are too many: "
        "name a group to have all its verdicts",
    )
    shown = {each.summary.group: as_json(each, round(job.now * 1000), Bounds()) for each in listed.groups}
    assert shown["only pending"]["partitions"] is None
    assert shown["only pending"]["verdicts"] is None
    assert shown["only pending"]["verdict"] == "pending"
