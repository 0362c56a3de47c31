"""One look at a table, judged: what is wrong in it, and up to when it is whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from streaming.broker.protocol.listing_json import PartitionRow, RetentionRow, TransactionRow
from streaming.broker.protocol.status_json import Problem
from streaming.cluster.verdicts.cases import NOTHING, RETENTION_KINDS, Cases, RowVerdicts, Verdict, all_cases, overdue_logs, row_verdicts
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import not_whole, unknown
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.verdicts.restart_check import RestartCheck
from streaming.common.arrays import Flags
from streaming.pages.api.history import NO_RATES, RateColumns
from streaming.pages.api.listed_groups import ListedGroups, groups_by_topic
from streaming.pages.api.look import Look

_MOST_DOUBTS = 100

_Row = TypeVar("_Row", PartitionRow, TransactionRow, RetentionRow)


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: problems are found once
class JudgedLook:
    """A look, with everything that its messages are made from."""

    look: Look
    circumstances: Circumstances
    groups: ListedGroups | None = None
    rates: RateColumns = NO_RATES
    newest_ms: int = -1  # everything up to then is in it, of all agents that are up
    started_ms: int = -1  # when the process began
    url: str = ""  # where people reach the page, "" if there is no such address
    unknown: Sequence[str] = field(default_factory=tuple)  # sentences about what else is not known
    whole: bool = True  # it is about a whole cluster, and not about some of its logs

    @property
    def at_ms(self) -> int:
        """As of when the problems are: the older time of the table and of the groups, which are judged in rounds."""
        groups = self.circumstances.groups
        return self.look.now_ms if groups is None else min(self.look.now_ms, groups.now_ms)

    @property
    def ready(self) -> bool:
        """Whether everything that was on the disks at the start is in the numbers."""
        return self.circumstances.start is None

    @cached_property
    def cases(self) -> tuple[Cases, ...]:
        """What is wrong with replicas."""
        return all_cases(self.circumstances)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, the most severe first."""
        return problems(self.circumstances, self.cases)

    def lasting_problems(self) -> tuple[Problem, ...]:
        """The same in sentences that are read later: with points in time, and not with how long ago or how soon these are."""
        return problems(replace(self.circumstances, lasting=True), self.cases)

    def with_roots(self, some: Sequence[Problem]) -> list[Problem]:
        """Problems and the roots of those that follow from one, in the order of all."""
        ids = {each.id for each in some} | {each.because for each in some}
        return [each for each in self.problems if each.id in ids]

    def kinds_of(self, log: int) -> set[str]:
        """The kinds of everything that is wrong with an exported log."""
        item = self.look.view.logs.items[log]
        return {each.kind.name for each in self.cases if item in each.items}

    @cached_property
    def restarts(self) -> RestartCheck:
        """Which brokers may be restarted."""
        return RestartCheck(circumstances=self.circumstances, limits_of=self.look.snapshot.context.limiter.now())

    @cached_property
    def partition_verdicts(self) -> RowVerdicts:
        """The worst that is wrong with each exported log."""
        return row_verdicts(self.look.view, self.cases)

    @cached_property
    def retention_verdicts(self) -> RowVerdicts:
        """The worst that is wrong with what is kept of each exported log."""
        return row_verdicts(self.look.view, self.cases, RETENTION_KINDS)

    @cached_property
    def overdue(self) -> Flags:
        """Whether the deletion of each exported log is overdue, by limits that are known or assumed."""
        return overdue_logs(self.circumstances)

    @cached_property
    def groups_by_topic(self) -> Mapping[str, int] | None:
        """How many groups have committed offsets in each topic that has any; None where no groups are read."""
        return None if self.groups is None else groups_by_topic(self.groups)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What is not known, in sentences: something may be wrong there that is no problem here."""
        return (*(unknown(self.circumstances, self.problems) if self.whole else ()), *self.unknown)[:_MOST_DOUBTS]

    @property
    def list_doubts(self) -> list[str]:
        """The same for a reader who sees a list alone: the status of a job that starts has in its first line how far that is."""
        return [*not_whole(self.circumstances), *self.doubts]


def with_verdicts(rows: Sequence[_Row], verdicts: Sequence[Verdict]) -> list[_Row]:
    """Rows with what is wrong with each of them."""
    both = zip(rows, verdicts, strict=True)
    return [row if each is NOTHING else replace(row, kind=each.name, severity=each.severity, since_ms=each.since_ms) for row, each in both]
