"""One look at a table, judged: what is wrong in it, and how fresh it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from streaming.api.rates import NO_RATES, RateColumns
from streaming.api.seen import Seen
from streaming.protocol.problem_json import Problem
from streaming.verdicts.all_problems import problems
from streaming.verdicts.circumstances import Circumstances


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: problems are found once
class Judged:
    """A look, with everything that its messages are made from. ``ready`` to ``unknown``: as in `streaming.api.status_message`."""

    seen: Seen
    of: Circumstances
    rates: RateColumns = NO_RATES
    ready: bool = True
    newest_ms: int = -1
    started_ms: int = -1
    unknown: Sequence[str] = field(default_factory=tuple)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, the most severe first."""
        return problems(self.of)
