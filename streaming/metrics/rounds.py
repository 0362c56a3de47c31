"""Which round of questions speaks for an agent: the last one whose journal's end has been reached.

What an agent answers is of the time at which its journal ended somewhere; it is believed once all rows up to there have been taken in.
"""

from dataclasses import dataclass, replace

from streaming.metrics.decisions import Decisions


@dataclass(frozen=True, slots=True)
class End:
    """Where a journal ended."""

    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class Round:
    """What an agent says is decided, and where its journal ended when it was asked; None where nothing has to be waited for."""

    decisions: Decisions
    end: End | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Of one agent: the one that speaks, None before the first, and those behind it whose end has not been reached.

    Of these the first one waits until it is reached, however many follow; of the others only the last one counts.
    """

    speaks: Decisions | None = None
    waiting: Round | None = None
    latest: Round | None = None
    reached: End | None = None

    def told(self, round_: Round) -> "Rounds":
        """With another answer of the agent."""
        if self.waiting is None or self._is_of_another_journal(self.waiting, round_):
            return replace(self, waiting=round_, latest=None)._moved()
        return replace(self, latest=round_)

    def arrived(self, end: End) -> "Rounds":
        """All rows up to there have been taken in."""
        before = self.reached
        if before is not None and before.journal == end.journal and before.seq >= end.seq:
            return self
        return replace(self, reached=end)._moved()

    @property
    def ahead(self) -> tuple[Decisions, ...]:
        """What will speak when more rows have been taken in, and says something else than what speaks now."""
        waiting = [each.decisions for each in (self.waiting, self.latest) if each is not None]
        return tuple(each for each in waiting if self.speaks is None or not each.is_same(self.speaks))

    @staticmethod
    def _is_of_another_journal(waiting: Round, later: Round) -> bool:
        """What waits for a journal that is no more waits for ever."""
        return waiting.end is not None and later.end is not None and waiting.end.journal != later.end.journal

    def _moved(self) -> "Rounds":
        if self.waiting is None or not self._is_reached(self.waiting):
            return self
        return replace(self, speaks=self.waiting.decisions, waiting=self.latest, latest=None)._moved()

    def _is_reached(self, round_: Round) -> bool:
        end, reached = round_.end, self.reached
        return end is None or (reached is not None and reached.journal == end.journal and reached.seq >= end.seq)
