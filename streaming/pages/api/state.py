"""The messages about the state of a cluster, for `/api/v1/`, the page and the terminal, which show it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Self, TypeVar

import streaming
from streaming.broker.protocol.disk_json import DISK_PATH, DiskAnswer
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage
from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.listing_json import (
    ALL_ROWS,
    BROKERS_PATH,
    COUNT_PATH,
    LARGEST_LIMIT,
    PARTITIONS_PATH,
    RETENTION_PATH,
    TOPICS_PATH,
    TRANSACTIONS_PATH,
    BrokerPage,
    CountPage,
    PartitionDetail,
    PartitionPage,
    RetentionPage,
    TopicDetail,
    TopicPage,
    TransactionPage,
)
from streaming.broker.protocol.restart_json import RESTART_PATH, RestartPage
from streaming.broker.protocol.status_json import (
    EVENTS_PATH,
    PROBLEMS_PATH,
    SEVERITIES,
    STATUS_PATH,
    AgentState,
    EventPage,
    JobStart,
    Problem,
    ProblemPage,
    Status,
)
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness, not_current, not_whole, start_sentence, verdict
from streaming.cluster.verdicts.incidents import count, roots
from streaming.cluster.verdicts.kinds import LOG_DIR_UNWATCHED
from streaming.cluster.verdicts.restart_check import restart_page
from streaming.cluster.view.broker_status import away_brokers
from streaming.cluster.view.disk_use import disk_found
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.taillag import StartProgress
from streaming.errors import NotYetError, UsageError
from streaming.pages.api import log_rows
from streaming.pages.api.counts_and_disks import count_page, disk_page
from streaming.pages.api.event_log import EventLog
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.listed_groups import JUDGED_BY, ListedGroups
from streaming.pages.api.log_rows import broker_page, partition_detail, topic_detail, topic_page
from streaming.pages.api.paging import filter_of, flag_of, limit_of, offset_of, page_request, parameters_of
from streaming.pages.api.topic_use import ASKED_BY, question_of
from streaming.pages.listings.declared_lists import BROKERS, GROUPS, PARTITIONS, RETENTION, TOPICS, TRANSACTIONS

_Detail = TypeVar("_Detail")

MOST_AGENTS = 1000
"""The most agents of an answer: those that are down first."""

P = TypeVar("P", PartitionPage, TransactionPage, RetentionPage, CountPage, GroupPage, TopicPage, BrokerPage)


class State:
    """Makes messages from looks at a table. Queries are those of the paths of `/api/v1/`, without "?".

    Args:
        look: returns a look that is young enough to be shown.
        largest_limit: the most rows of an answer.
        events: what has changed while a job looked; one reading of log dirs has nothing of that.

    Raises (all methods with a query):
        UsageError: a parameter is not understood; the sentence names it.
    """

    def __init__(
        self,
        look: Callable[[], JudgedLook],
        largest_limit: int = LARGEST_LIMIT,
        events: EventLog | None = None,
    ) -> None:
        self._look = look
        self._events = EventLog() if events is None else events
        self._largest = largest_limit
        self._lists: Mapping[str, Callable[[str], PublicMessage]] = {
            STATUS_PATH: self.status,
            PROBLEMS_PATH: self.problems,
            PARTITIONS_PATH: self.partitions,
            TRANSACTIONS_PATH: self.transactions,
            RETENTION_PATH: self.retention,
            COUNT_PATH: self.count,
            GROUPS_PATH: self.groups,
            TOPICS_PATH: self.topics,
            BROKERS_PATH: self.brokers,
            DISK_PATH: self.disk,
            EVENTS_PATH: self.events,
            RESTART_PATH: self.restart,
        }

    @classmethod
    def of_log_dirs(cls, judged: JudgedLook) -> Self:
        """That of one reading of log dirs. A command may print all rows."""
        return cls(lambda: judged, ALL_ROWS)

    def answer(self, path: str, query: str = "") -> PublicMessage | None:
        """What is at a path of `/api/v1/` besides those of single things; None if there is nothing."""
        make = self._lists.get(path)
        return None if make is None else make(query)

    def status(self, query: str = "") -> Status:
        """What is wrong all in all, up to when that is whole, and every agent."""
        parameters_of(query, ())
        return status_of(self._look())

    def problems(self, query: str = "") -> ProblemPage:
        """Problems, the most severe first."""
        judged = self._look()
        page = problem_page(judged.problems, query, judged.at_ms, self._largest)
        return replace(page, version=streaming.__version__, doubts=judged.list_doubts)

    def partitions(self, query: str = "") -> PartitionPage:
        """Partitions."""
        request, judged = page_request(query, PARTITIONS, self._largest), self._look()
        return _answered(log_rows.partition_page(judged.look, request, judged.partition_verdicts, judged.rates), judged)

    def transactions(self, query: str = "") -> TransactionPage:
        """Open transactions."""
        request, judged = page_request(query, TRANSACTIONS, self._largest), self._look()
        page = _answered(log_rows.transaction_page(judged.look, judged.circumstances, request), judged)
        # a reading of log dirs says it itself, in other words
        return replace(page, doubts=[*page.doubts, *_unwatched(judged)]) if judged.circumstances.live else page

    def retention(self, query: str = "") -> RetentionPage:
        """What is kept of partitions."""
        request, judged = page_request(query, RETENTION, self._largest), self._look()
        return _answered(log_rows.retention_page(judged, request), judged)

    def count(self, query: str = "") -> CountPage:
        """How many records there are."""
        judged = self._look()
        page = count_page(judged, query, self._largest)
        answered = _answered(page, judged)
        return replace(answered, doubts=[*answered.doubts, *page.doubts])

    def groups(self, query: str = "") -> GroupPage:
        """Consumer groups.

        Raises:
            NotYetError: nothing is known of them yet.
        """
        request, judged = page_request(query, GROUPS, self._largest, JUDGED_BY), self._look()
        return _answered(_groups(judged, query).page(request), judged)

    def group(self, name: str, query: str = "") -> GroupDetail | None:
        """One consumer group with its partitions, None if there is none with this name.

        Raises:
            NotYetError: nothing is known of any yet, or the job starts, and may still find it.
        """
        parameters_of(query, JUDGED_BY)
        judged = self._look()
        return _found(_groups(judged, query).named(name), judged)

    def topics(self, query: str = "") -> TopicPage:
        """Topics."""
        request, judged = page_request(query, TOPICS, self._largest, ASKED_BY), self._look()
        return _answered(topic_page(judged, request, question_of(query)), judged)

    def topic(self, name: str) -> TopicDetail | None:
        """One topic, None if no partition of one with this name is shown.

        Raises:
            NotYetError: the job starts, and may still find one.
        """
        judged = self._look()
        return _found(topic_detail(judged, name), judged)

    def brokers(self, query: str = "") -> BrokerPage:
        """Brokers."""
        request, judged = page_request(query, BROKERS, self._largest), self._look()
        return _answered(broker_page(judged, request), judged)

    def disk(self, query: str = "") -> DiskAnswer:
        """What fills log dirs, and when they are full."""
        judged = self._look()
        history = judged.look.snapshot.context.disk_history if judged.ready else None
        found = disk_found(judged.look.view, judged.circumstances.agents, judged.look.now_ms, history)
        page = disk_page(found, query, self._largest)
        doubts = [*not_whole(judged.circumstances), *_unwatched(judged), *page.doubts]
        return replace(page, doubts=doubts, away=away_brokers(judged.circumstances.processes))

    def restart(self, query: str = "", before: Mapping[tuple[str, int], int] = MappingProxyType({})) -> RestartPage:
        """Which brokers may be restarted.

        Args:
            before: `leader_ends` of a moment ago, where this is one reading of log dirs.

        Raises:
            UsageError: also, there is no such broker, or no reason to accept of such a code.
        """
        judged, given = self._look(), parameters_of(query, ("broker", "accept"))
        check = replace(judged.restarts, before=before) if before else judged.restarts
        return restart_page(check, given.get("broker", ""), [code for code in given.get("accept", "").split(",") if code])

    def leader_ends(self) -> Mapping[tuple[str, int], int]:
        """The ends of leaders whose next leader is just copying, by topic and partition."""
        return self._look().restarts.ends()

    def events(self, query: str = "") -> EventPage:
        """What has changed lately, the newest first."""
        return self._events.page(query, self._look(), self._largest)

    def partition(self, topic: str, partition: int) -> PartitionDetail | None:
        """One partition, None if there is none with this name and number.

        Raises:
            NotYetError: the job starts, and may still find it.
        """
        judged = self._look()
        return _found(partition_detail(judged, topic, partition), judged)


def status_of(judged: JudgedLook) -> Status:
    """The status of a look.

    What is wrong: the status, with the first two sentences of page and terminal, every agent, and problems.
    """
    circumstances, every, start = judged.circumstances, judged.problems, judged.circumstances.start
    newest_ms = min(judged.newest_ms, judged.at_ms) if start is None else -1
    agents = sorted(circumstances.agents, key=lambda each: (each.up, each.name))
    return Status(
        at_ms=judged.at_ms,
        version=streaming.__version__,
        ready=start is None,
        start=None if start is None else _start(start),
        verdict=verdict(circumstances, every),
        freshness=freshness(circumstances, newest_ms),
        not_current=not_current(circumstances, newest_ms),
        live=circumstances.live,
        severity=every[0].gravity if every else "",
        **count(every),
        newest_ms=newest_ms,
        agents=[_agent(circumstances, each) for each in agents[:MOST_AGENTS]],
        omitted_agents=max(len(agents) - MOST_AGENTS, 0),
        partitions=len(circumstances.view.logs.columns),
        logs=len(circumstances.view.observed.columns),
        started_ms=judged.started_ms,
        cluster_id=next((each.cluster_id for each in circumstances.agents if each.cluster_id), ""),
        redacted=circumstances.commands.redacted,
        doubts=list(judged.doubts),
        url=judged.url,
    )


def _start(start: StartProgress) -> JobStart:
    left_ms = -1 if start.left_s < 0 else round(start.left_s * 1000)
    return JobStart(step=start.step, what=start_sentence(start), done_bytes=start.done_bytes, all_bytes=start.all_bytes, left_ms=left_ms)


def _agent(circumstances: Circumstances, agent: AgentStatus) -> AgentState:
    size, seconds = circumstances.lags.get(agent.name, (None, -1.0))
    return AgentState(
        name=agent.name,
        up=agent.up,
        brokers=list(agent.brokers),
        behind_bytes=-1 if size is None else size,
        behind_ms=-1 if seconds < 0 else round(seconds * 1000),
        problems=[str(each) for each in agent.problems],
        explanation=agent.explanation,
    )


def problem_page(every: Sequence[Problem], query: str, at_ms: int, largest: int = LARGEST_LIMIT) -> ProblemPage:
    """The problems that a query string asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("severity", "filter", "roots", "offset", "limit"))
    severity, wanted = given.get("severity", ""), filter_of(given).casefold()
    if severity and severity not in SEVERITIES:
        raise UsageError(f"severity is not one of {', '.join(SEVERITIES)}")
    offset, counts, is_of_roots = offset_of(given), count(every), flag_of(given, "roots")
    rows = roots(every) if is_of_roots else every
    matched = [
        each
        for each in rows
        if (not severity or (each.gravity if is_of_roots else each.severity) == severity)
        and (not wanted or wanted in _text(each).casefold())
    ]
    return ProblemPage(
        at_ms=at_ms,
        total=len(rows),
        matched=len(matched),
        offset=offset,
        rows=matched[offset : offset + limit_of(given, largest=largest)],
        critical=counts["critical"],
        warning=counts["warning"],
        info=counts["info"],
    )


def _text(problem: Problem) -> str:
    """What a filter is looked for in."""
    place = f"{problem.topic}-{problem.partition}" if problem.partition >= 0 else problem.topic
    follows = (each.text for each in problem.consequences)
    return " ".join((problem.kind, problem.what, place, problem.group, problem.log_dir, problem.agent, problem.holds_back, *follows))


def _answered(page: P, judged: JudgedLook) -> P:
    """A page as it is sent: with the version that made it, what is not known, and which brokers are away."""
    away = away_brokers(judged.circumstances.processes)
    return replace(page, version=streaming.__version__, doubts=judged.list_doubts, away=away)


def _unwatched(judged: JudgedLook) -> Iterator[str]:
    """The log dirs of which nothing is in the answer, though their brokers are: what is wrong there is in no row."""
    return (each.what for each in judged.problems if each.kind == LOG_DIR_UNWATCHED.name)


def _groups(judged: JudgedLook, query: str) -> ListedGroups:
    if judged.groups is None:
        raise NotYetError("nothing is known of consumer groups yet")
    return judged.groups.rejudged(query)


def _found(detail: _Detail | None, judged: JudgedLook) -> _Detail | None:
    if detail is None and not judged.ready:
        raise NotYetError("the job is starting, and has not read everything yet")
    return detail
