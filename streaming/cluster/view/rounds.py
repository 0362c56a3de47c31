"""Which round of answers counts for an agent: the last one whose journal end has been reached.

An agent's answer belongs to the position at which its journal ended then. It counts once all rows up to that position are processed.
"""

from dataclasses import dataclass, replace

from streaming.cluster.view.decisions import Decisions


@dataclass(frozen=True, slots=True)
class End:
    """Where a journal ended."""

    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class Round:
    """What is decided by an agent's answer, and where its journal ended when it was asked; None if the answer counts at once."""

    decisions: Decisions
    end: End | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of one agent: ``speaks`` is the one that counts, None before the first; the later ones wait for their end.

    The first of the later rounds, ``waiting``, stays until its end is reached, however many follow. Of the others, only the last one is
    kept, as ``latest``.
    """

    speaks: Decisions | None = None
    waiting: Round | None = None
    latest: Round | None = None
    reached: End | None = None

    def updated(self, round_: Round) -> "Rounds":
        """The rounds after another answer of the agent."""
        if self.waiting is None or self._is_of_another_journal(self.waiting, round_):
            return replace(self, waiting=round_, latest=None)._moved()
        return replace(self, latest=round_)

    def arrived(self, end: End) -> "Rounds":
        """The rounds after all rows up to ``end`` have been processed."""
        before = self.reached
        if before is not None and before.journal == end.journal and before.seq >= end.seq:
            return self
        return replace(self, reached=end)._moved()

    @property
    def ahead(self) -> tuple[Decisions, ...]:
        """The decisions that will count when more rows have been processed, and differ from those that count now."""
        waiting = [each.decisions for each in (self.waiting, self.latest) if each is not None]
        return tuple(each for each in waiting if self.speaks is None or not each.is_same(self.speaks))

    @staticmethod
    def _is_of_another_journal(waiting: Round, later: Round) -> bool:
        """Whether ``waiting`` is for an earlier journal: it would wait for ever, because that journal is gone."""
        return waiting.end is not None and later.end is not None and waiting.end.journal != later.end.journal

    def _moved(self) -> "Rounds":
        if self.waiting is None or not self._is_reached(self.waiting):
            return self
        return replace(self, speaks=self.waiting.decisions, waiting=self.latest, latest=None)._moved()

    def _is_reached(self, round_: Round) -> bool:
        end, reached = round_.end, self.reached
        return end is None or (reached is not None and reached.journal == end.journal and reached.seq >= end.seq)
