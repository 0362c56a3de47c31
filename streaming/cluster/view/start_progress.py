"""How far a job that starts is in what was on the disks: in steps, and in bytes as its agents report them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StartStep(StrEnum):
    """What a job that starts waits for, in this order; where agents read before Spark is there, `READING` comes first."""

    AGENTS = "agents"  # the first answer of an agent
    SPARK = "spark"  # Spark's JVM
    READING = "reading"  # agents read what is on their disks
    COUNTING = "counting"  # what they have read becomes numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProgress:
    """How far a start is. Bytes of logs that are done and that there are in this step, -1 not known; ``left_s``: until the step is over."""

    step: StartStep
    done_bytes: int = -1
    all_bytes: int = -1
    left_s: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAgent:
    """What an agent that is up has reported: bytes that it has not read, -1 not known, and whether it still reads what was there before."""

    unread_bytes: int
    catching_up: bool


@dataclass(slots=True)
class StartMeter:
    """Follows a start; call `note` to know how far it is. What a journal held before counts as neither read nor counted."""

    _begun: dict[str, int] = field(default_factory=dict)  # by agent: its total from which on this start counts
    _step: StartStep = StartStep.AGENTS
    _step_at: float = 0.0
    _step_done: int = 0
    _progress: StartProgress = field(default_factory=lambda: StartProgress(step=StartStep.AGENTS))

    def met(self, agent: str, published: int) -> None:
        """An agent answers for the first time, or once more: its journal holds so many bytes."""
        if published < self._begun.setdefault(agent, published):  # another journal
            self._begun[agent] = 0

    def note(self, agents: Iterable[ReadAgent], totals: Mapping[str, tuple[int, int]], at: float, *, querying: bool) -> None:
        """Take what is known now.

        Args:
            agents: those that are up.
            totals: for each agent the bytes that are in the metrics, and those that its journal holds.
            at: seconds of a clock that nobody sets.
            querying: Spark is there, and its query runs.
        """
        for agent, (processed, published) in totals.items():
            self.met(agent, published)
            if 0 < processed < self._begun[agent]:  # the rest has waited since the run before
                self._begun[agent] = processed
        up = list(agents)
        read = sum(published - self._begun[agent] for agent, (_, published) in totals.items())
        counted = sum(max(0, processed - self._begun[agent]) for agent, (processed, _) in totals.items())
        unread = sum(max(0, each.unread_bytes) for each in up)
        if not up:
            self._at(StartStep.AGENTS, at)
        elif unread or (read and any(each.catching_up and each.unread_bytes < 0 for each in up)):
            self._at(StartStep.READING, at, read, read + unread if unread else -1)
        elif not querying:
            self._at(StartStep.SPARK, at, -1, read or -1)
        elif any(each.catching_up for each in up):
            self._at(StartStep.READING, at)
        else:
            self._at(StartStep.COUNTING, at, min(counted, read) if read else -1, read or -1)

    @property
    def progress(self) -> StartProgress:
        """How far it was when `note` was called last."""
        return self._progress

    def _at(self, step: StartStep, at: float, done: int = -1, whole: int = -1) -> None:
        if step is not self._step or done < self._step_done:
            self._step, self._step_at, self._step_done = step, at, done
        moved, seconds = done - self._step_done, at - self._step_at
        left = (whole - done) * seconds / moved if moved > 0 and whole >= done else -1.0
        self._progress = StartProgress(step=step, done_bytes=done, all_bytes=whole, left_s=left)
