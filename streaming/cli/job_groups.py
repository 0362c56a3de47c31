"""Asks a running job about consumer groups, over HTTP."""

import time
from collections.abc import Collection
from urllib.parse import quote

from streaming.cli import job_answers
from streaming.errors import UsageError
from streaming.formatting import format_be, format_count, format_name
from streaming.offline.group_answer import GroupAnswer
from streaming.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, GroupSummary, path_of
from streaming.short_names import possible_names

_MOST_DETAILS, _MOST_SECONDS = 200, 60.0
"""The most groups of a list that are asked for one by one, and how long: their sums alone do not show all verdicts."""

_MOST_FAILED = 5


def ask(job: str, names: Collection[str], *, whole: bool) -> GroupAnswer:
    """The groups with these names, or all.

    Args:
        job: ``http://[USER:PASSWORD@]HOST:PORT``, or with https.
        whole: of all groups, those that have read everything are wanted with their partitions, too.

    Raises:
        UsageError: the job cannot be reached, refuses to answer, or answers something else.
    """
    if not names:
        return _all(job, whole=whole)
    found, missing = [], []
    for name in dict.fromkeys(names):
        groups = (job_answers.ask(job, path_of(possible), GroupDetail) for possible in possible_names(name))
        group = next((each for each in groups if each is not None), None)
        if group is None:
            missing.append(name)
        else:
            found.append(group)
    unread = max((each.unread for each in found), default=0)
    if missing:  # another server has no such group, either; nor has a job that does not read all coordinators' logs yet
        unread = max(unread, _page(job, f"{GROUPS_PATH}?limit=1").unread)
    return GroupAnswer(groups=tuple(sorted(found, key=lambda each: each.summary.group)), missing=tuple(missing), doubts=_doubts(unread))


def _all(job: str, *, whole: bool) -> GroupAnswer:
    """All groups; those that may need attention with their partitions, the largest lags first."""
    found: dict[str, GroupDetail] = {}
    page = _page(job, GROUPS_PATH)
    while True:
        found |= {each.group: GroupDetail(at_ms=page.at_ms, summary=each, partitions=[]) for each in page.groups}
        if not page.next or len(found) >= page.total:
            break
        page = _page(job, f"{GROUPS_PATH}?after={quote(page.next, safe='')}")
    order = sorted((each.summary for each in found.values()), key=lambda each: (_has_read_all(each), -each.lag_offsets))
    wanted = [each for each in order if whole or not _has_read_all(each)]
    until = time.monotonic() + _MOST_SECONDS
    asked, failed = 0, []
    for summary in wanted[:_MOST_DETAILS]:
        if time.monotonic() >= until:
            break
        asked += 1
        try:
            group = job_answers.ask(job, path_of(summary.group), GroupDetail)
        except UsageError as error:  # the others are answered all the same
            failed.append(f"{format_name(summary.group)} is judged by its sums alone: {error}")
            continue
        if group is not None:
            found[summary.group] = group
    by_sums = sum(not _has_read_all(each) for each in wanted[asked:])
    doubts = (*_doubts(page.unread, page.omitted, by_sums), *failed[:_MOST_FAILED])
    if len(failed) > _MOST_FAILED:
        doubts = (*doubts, f"and {format_count(len(failed) - _MOST_FAILED, 'other group')}")
    return GroupAnswer(groups=tuple(found.values()), missing=(), doubts=doubts)


def _page(job: str, path: str) -> GroupPage:
    page = job_answers.ask(job, path, GroupPage)
    if page is None:
        raise UsageError(f"{job_answers.shown(job)}: it does not answer about consumer groups; its version may be an earlier one")
    return page


def _has_read_all(of: GroupSummary) -> bool:
    """Whether nothing can be found in the partitions."""
    return of.lag_offsets <= 0 and not any((of.unknown, of.held, of.beyond_end, of.below_start, of.pending))


def _doubts(unread: int, omitted: int = 0, by_sums: int = 0) -> tuple[str, ...]:
    doubts = []
    if unread:
        doubts.append(f"{unread} coordinators' logs are not read to their end from a current replica: groups of theirs may be missing")
    if omitted:
        doubts.append(f"{format_count(omitted, 'group')} {format_be(omitted)} left out, because groups_limit is lower")
    if by_sums:
        many = f"{format_count(by_sums, 'group')} {format_be(by_sums)}"
        doubts.append(f"{many} judged by sums alone, because there are too many: name a group to have all its verdicts")
    return tuple(doubts)
