"""The agents of a stream: which one answers at which address. All are asked in parallel, again and again, because they come and go.

The first time that an agent does not answer, the caller waits for it. From then on it is asked in the background, with growing pauses, and
nobody waits for it until it answers. So the others' rows go on, whatever is wrong with one agent.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cache
from typing import TypeVar

import pyarrow as pa

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import Range
from streaming.broker.protocol.status_messages import Status
from streaming.common.event_row import journal_file
from streaming.common.logs import configure_worker
from streaming.errors import AgentError, SameAgentError, VersionError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.source.job_options import SourceOptions

log = logging.getLogger(__name__)
configure_worker()  # Spark imports this where it plans and reads

PATIENCE_SECONDS = 20.0
"""How long a read is retried here, because Spark's own retries come without a pause."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 10.0
"""The first and the longest pause before an agent that does not answer is asked again; the pause doubles each time."""

REFUSED_SECONDS = 30.0
"""The pause before an agent that answers, but may not take part, is checked again."""

CHECK_AGAIN_SECONDS = 60.0
"""The pause before it is checked again whether an agent's rows can be read: the agent may change without a new version."""

_JOB_SEES = frozenset(
    {
        Reason.REFUSED,
        Reason.UNRESOLVED,
        Reason.UNTRUSTED,
        Reason.UNAUTHORIZED,
        Reason.PROTOCOL,
        Reason.OTHER_CLUSTER,
        Reason.SAME_NAME,
    }
)
"""Reasons that keep an agent away whatever the request is, so that the job detects them too."""

_AT_ONCE = 32
_ASIDE_AT_ONCE = 8
_READS_AT_ONCE = 8
_PAUSE_SECONDS = 0.25

_Answer = TypeVar("_Answer")


_job_logs = False


def leave_to_the_job() -> None:
    """In this process, do not log what the job logs too: the job asks each agent for its status in a process of its own."""
    global _job_logs
    _job_logs = True


class AgentLine:
    """The connection of this process to an address, and whether to wait for its answers. One thread decides, several may ask."""

    def __init__(self, address: str, files: ClientFiles) -> None:
        self.client = AgentClient(address, files)
        self.error: AgentError | None = None
        """Why nobody waits for its answers; None if they are waited for."""
        self._logged = self._refusal_logged = ""
        self._logs = True
        self._pause = 0.0
        self._again_at = 0.0
        self._aside: Future[Status] | None = None
        self._checked: tuple[tuple[str, str, int], AgentError | None] | None = None  # what was checked, and the result
        self._check_again_at = 0.0

    def is_available(self) -> bool:
        """Whether it answered the last time. If it did not, ask it in the background when its pause is over."""
        if self.error is None:
            return True
        if self._aside is None:
            if time.monotonic() >= self._again_at:
                self._aside = _pool("aside", _ASIDE_AT_ONCE).submit(self.client.status)
        elif self._aside.done():
            error, self._aside = self._aside.exception(), None
            if error is None:
                self.error = None
                return True
            self._put_off(error if isinstance(error, AgentError) else AgentError(f"agent at {self.client.address}: {error}"))
        return False

    def ask(self, question: Callable[[AgentClient], _Answer], *, logs: bool = True) -> _Answer | None:
        """Ask it and wait; None if it does not answer. ``logs``: log that here; else whoever asks does."""
        self._logs = logs
        try:
            answer = question(self.client)
        except AgentError as error:
            self._put_off(error)
            return None
        if self._logged:
            if logs:
                log.info("agent answers again", extra={"address": self.client.address})
            self._logged = ""
        self._pause = 0.0
        return answer

    def misfit(self, status: Status) -> AgentError | None:
        """Why the agent with this status cannot be understood, None if it can. Checked when its version changes, and now and then."""
        identity = (status.version, status.journal, status.protocol)
        if self._checked is None or self._checked[0] != identity or time.monotonic() >= self._check_again_at:
            pause = CHECK_AGAIN_SECONDS
            try:
                self.client.check(status)
                self._checked, self._refusal_logged = (identity, None), ""
            except AgentError as error:
                self._checked = (identity, error)
                pause = REFUSED_SECONDS if isinstance(error, VersionError) else 0.0
            self._check_again_at = time.monotonic() + pause
        return self._checked[1]

    def refuse(self, error: AgentError, *, logs: bool = True) -> None:
        """It answers, but may not take part. ``logs``: as for `ask`."""
        self.error = error
        self._again_at = time.monotonic() + REFUSED_SECONDS
        self._refusal_logged = self._log_once(error, self._refusal_logged) if logs else str(error)
        self.client.close()

    def _put_off(self, error: AgentError) -> None:
        self.error = error
        self._pause = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * self._pause))
        self._again_at = time.monotonic() + self._pause
        self._logged = self._log_once(error, self._logged) if self._logs else str(error)
        self.client.close()

    def _log_once(self, error: AgentError, logged: str) -> str:
        """Log why it does not take part, each reason once. ``logged`` is the reason before; returns the present one."""
        if str(error) != logged and not (_job_logs and error.reason in _JOB_SEES):
            log.warning("agent does not take part", extra={"address": self.client.address, "reason": error.reason, "error": str(error)})
        return str(error)


@cache
def line(address: str, files: ClientFiles = NO_FILES) -> AgentLine:
    """The line of this process to an address."""
    return AgentLine(address, files)


def client(address: str, files: ClientFiles = NO_FILES) -> AgentClient:
    """The connection of this process to an address."""
    return line(address, files).client


@cache
def _pool(name: str, size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix=name)


def ask_all(
    addresses: Iterable[str], question: Callable[[AgentClient], _Answer], files: ClientFiles = NO_FILES, *, logs: bool = True
) -> dict[str, _Answer]:
    """Ask every agent at once; one that does not answer is missing from the result. ``logs``: as for `AgentLine.ask`."""
    lines = [each for each in (line(address, files) for address in sorted(set(addresses))) if each.is_available()]
    if len(lines) == 1:
        answers = [lines[0].ask(question, logs=logs)]
    else:
        answers = list(_pool("ask", _AT_ONCE).map(lambda each: each.ask(question, logs=logs), lines))
    return {each.client.address: answer for each, answer in zip(lines, answers, strict=True) if answer is not None}


def errors(addresses: Iterable[str], files: ClientFiles = NO_FILES) -> dict[str, AgentError]:
    """The reason of each agent that does not answer, by address."""
    found = {address: line(address, files).error for address in addresses}
    return {address: error for address, error in found.items() if error is not None}


def misfits(answers: Mapping[str, Status], files: ClientFiles = NO_FILES) -> dict[str, AgentError]:
    """The agents that answered, but are of a version that this one does not understand: the reason, by address."""
    lines = [line(address, files) for address in answers]
    errors = _pool("ask", _AT_ONCE).map(lambda each: each.misfit(answers[each.client.address]), lines) if lines else ()
    return {each.client.address: error for each, error in zip(lines, errors, strict=True) if error is not None}


def unwelcome(
    answers: Mapping[str, Status], there: Mapping[str, Status], journals: Mapping[str, str], cluster_id: str
) -> dict[str, AgentError]:
    """The agents that answered, but may not take part: the reason, by address.

    Args:
        there: the agents that take part already, by address.
        journals: the journal that each agent's name had so far. If two agents have one name, the one with that journal takes part.
        cluster_id: of the job, "" for any.
    """
    found: dict[str, AgentError] = {}
    taken = {status.agent: (address, status.journal) for address, status in there.items()}
    for address in sorted(answers, key=lambda address: (answers[address].journal != journals.get(answers[address].agent), address)):
        status = answers[address]
        if len(known_clusters((cluster_id, status.cluster_id))) > 1:
            found[address] = AgentError(
                f"agent at {address}: it watches cluster {status.cluster_id}, this job cluster {cluster_id}: run one job per cluster",
                Reason.OTHER_CLUSTER,
            )
            continue
        other, journal = taken.setdefault(status.agent, (address, status.journal))
        if other != address:
            is_same = journal_file(journal) == journal_file(status.journal)  # a consumer may have begun between two answers
            same = (
                f"it is the agent at {other} ({status.agent}), which takes part once: name one of its addresses"
                if is_same
                else f"it has the name of another agent, which is the one at {other} ({status.agent}): start each agent with a name of its "
                "own: segtail agent --name NAME"
            )
            found[address] = (SameAgentError if is_same else AgentError)(
                f"agent at {address}: {same}",
                Reason.SAME_NAME,
            )
    return found


def read_ranges(options: SourceOptions, ranges: Mapping[str, Range], addresses: Mapping[str, str]) -> Iterator[tuple[str, pa.Table | None]]:
    """All rows of each agent's range, in the order in which they arrive; None for an agent that does not answer.

    All ranges are read at the same time, and each is retried for a while. An agent knows what has arrived, and sends the rest later.

    Args:
        addresses: the last address of each agent. It is tried first; the agent may have come back at an address that no other agent had.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    if len(ranges) == 1:
        yield from ((agent, _read_range(options, agent, request, addresses, deadline)) for agent, request in ranges.items())
        return
    reads = {
        _pool("read", _READS_AT_ONCE).submit(_read_range, options, agent, request, addresses, deadline): agent
        for agent, request in ranges.items()
    }
    for read in as_completed(reads):
        yield reads[read], read.result()


def _read_range(options: SourceOptions, agent: str, request: Range, addresses: Mapping[str, str], deadline: float) -> pa.Table | None:
    last_at, others = addresses.get(agent), {address for name, address in addresses.items() if name != agent}
    logged = ""
    while True:
        candidates = [address for address in options.addresses() if address not in others]
        for address in sorted(candidates, key=lambda address: address != last_at):
            to = client(address, options.files)
            try:
                if to.status().agent == agent:
                    return to.read(request, agent)
            except VersionError as error:  # the process that plans detects this too, and plans no more for it
                log.error("an agent's rows cannot be read", extra={"agent": agent, "address": address, "error": str(error)})
                return None
            except AgentError as error:
                if str(error) != logged:
                    log.warning("read failed", extra={"agent": agent, "address": address, "reason": error.reason, "error": str(error)})
                    logged = str(error)
                to.close()
        if time.monotonic() > deadline:
            log.error("range not delivered now, it will be planned again", extra={"agent": agent, "upto": request.upto})
            return None
        time.sleep(_PAUSE_SECONDS)


class Backoff:
    """Growing pauses for agents whose ranges are planned and do not arrive, so that others do not wait for their reads.

    The first range that does not arrive may be chance. The pauses begin with the second one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._missed: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def awake(self, addresses: Iterable[str]) -> list[str]:
        """The agents that are planned for now."""
        now = self._clock()
        return [address for address in addresses if self._until.get(address, now) <= now]

    def note(self, address: str, *, missed: bool) -> None:
        """A plan reported whether something that was planned before is ``missed``."""
        self._missed[address] = self._missed.get(address, 0) + 1 if missed else 0
        pause = 2.0 ** min(5, self._missed[address] - 1) if self._missed[address] > 1 else 0.0
        self._until[address] = self._clock() + pause
