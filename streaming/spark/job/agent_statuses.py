"""Polls the status of the job's agents for the metrics: which are up, which may not take part and why, and whose clock differs."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.protocol.status_messages import CatalogPart, CatalogVersion, Status, StatusRequest, UnreadableLog
from streaming.cluster.view import transaction_columns
from streaming.cluster.view.answers import apply, by_our_clock
from streaming.cluster.view.broker_status import broker_phases, each_broker
from streaming.cluster.view.decisions import End
from streaming.cluster.view.observer import AgentStatus, Observer
from streaming.cluster.view.table import Table
from streaming.common.catalog import NOTHING_DECIDED, Catalog, Version, unpack
from streaming.common.settings import Settings
from streaming.common.targets import Scheme, is_loopback
from streaming.errors import AgentError, FormatError, UsageError
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client import address_lookup
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.client.agent_client import AgentClient, credentials
from streaming.spark.source import agent_connections
from streaming.spark.source.job_options import SourceOptions

log = logging.getLogger(__name__)

GONE_SECONDS = 3600.0
"""An agent without an address for so long was taken away, if its broker does not run either."""

CLOCK_SECONDS = 10.0
"""Clocks that differ by more than this make ages wrong by as much. With one time service, agents and job differ by milliseconds."""

STUCK_SECONDS = 60.0
"""An agent whose watcher has given no sign of life for so long counts as down: it answers, but its answers are out of date."""

_FILES = ("agent_ca", "agent_cert", "agent_key", "agent_token_file")

QUIET_SECONDS = 2.5
"""So long an answer holds of agents that are well. A turn comes each second, so it is the third one that asks."""


class AgentWatch:
    """The statuses of all agents of a job, poll by poll. Only one thread uses it.

    Args:
        clock: seconds of `time.monotonic`.
        names: of agents that are known before they are reached.
        cluster_id: of the job, "" as long as it is not known.
    """

    def __init__(
        self, options: SourceOptions, observer: Observer, table: Table, clock: Callable[[], float], *, names: Iterable[str], cluster_id: str
    ) -> None:
        self.cluster_id = cluster_id
        self.consumer = ""
        """The job's id as a consumer, "" as long as it is not known."""
        self._unanswered: Path | None = None  # in which the query says who does not answer it; None as long as there is no query
        self._options = options
        self._observer = observer
        self._table = table
        self._clock = clock
        self._names: dict[str, str] = {}  # by address: the agent that answered there last
        self._journals: dict[str, str] = {}  # by agent
        self._packed: dict[str, str] = {}  # what is packed in statuses of brokers, by name
        self._catalogs: dict[str, tuple[Version, Catalog]] = {}  # by agent
        self._always = tuple(names)
        self._expected = ExpectedAgents()
        self._statuses: dict[str, AgentStatus] = {}
        self._logged: dict[str, tuple[str, ...]] = {}  # the problems of each that were logged last

    @property
    def up(self) -> frozenset[str]:
        """Names of the agents that answered the last poll and take part."""
        return frozenset(name for name, status in self._statuses.items() if status.up)

    @property
    def quiet(self) -> bool:
        """Whether every agent is well and has read its disks, and the table waits for no answer that a poll finds."""
        well = all(status.up and not (status.problems or status.catching_up) for status in self._statuses.values())
        return bool(self._statuses) and well and not self._table.waiting.asked

    @property
    def unreadable(self) -> list[UnreadableLog]:
        """Logs that cannot be read by agents that are up, as far as these name them."""
        return [log for status in self._statuses.values() if status.up for log in status.unreadable_logs]

    @property
    def strangers(self) -> frozenset[str]:
        """Names of the agents that watch another cluster."""
        return frozenset(name for name, status in self._statuses.items() if Reason.OTHER_CLUSTER in status.problems)

    def poll(self) -> list[Status]:
        """Ask all agents once. One that does not answer is down until it does. Returns the answers of those that take part."""
        addresses, files = self._options.addresses(), self._options.files
        pending = transaction_columns.requests(self._table.waiting.asked)
        catalogs = [CatalogVersion(version.process, version.number) for version, _ in self._catalogs.values()]
        request = StatusRequest(list(self._packed), pending, True, catalogs, self.consumer)
        asked = agent_connections.ask_all(addresses, lambda client: _timed(client, request), files, logs=False)
        answers = {address: self._with_packed(status) for address, (status, _) in asked.items()}
        self._packed = {
            name: packed for status in answers.values() for each in status.broker_statuses for name, packed in each.packed.items()
        }
        misfits = agent_connections.misfits(answers, files)
        fitting = {address: status for address, status in answers.items() if address not in misfits}
        refused = agent_connections.unwelcome(fitting, {}, self._journals, self.cluster_id)
        welcome = {address: status for address, status in fitting.items() if address not in refused}
        shared = _shared(welcome)
        clocks = {} if self._options.address_file else {address: at for address, (_, at) in asked.items()}  # this host has this clock
        found = {
            status.agent: status_of(status, address, shared, clocks.get(address), self.consumer) for address, status in welcome.items()
        }
        away = {} if self._unanswered is None else agent_connections.read_unanswered(self._unanswered)
        for address, error in away.items():  # they answer here, and not the query: they take no part
            known = found.get(welcome[address].agent) if address in welcome else None
            if known is not None and known.address == address:
                found[known.name] = replace(known, up=False, problems=(*known.problems, str(error.reason)), explanation=str(error))
        self._journals |= {status.agent: status.journal for status in welcome.values()}
        self._names |= {address: status.agent for address, status in answers.items() if address not in refused}
        for address, error in misfits.items():
            agent_connections.line(address, files).refuse(error, logs=False)
            status = answers[address]
            of = status_of(status, address, frozenset(), None)
            found.setdefault(status.agent, replace(of, up=False, problems=(str(Reason(error.reason)),), explanation=str(error)))
        for address, error in (agent_connections.errors(addresses, files) | refused).items():
            name = address if address in refused else self._names.get(address, address)
            if name not in found:
                found[name] = self._down(name, Reason(error.reason), str(error))
        for target in address_lookup.unresolved(self._options.agents):
            found[target] = self._down(target, Reason.UNRESOLVED)
        missed = self._expected.missed(self._statuses, found, self._clock())
        found |= {name: self._down(name, Reason.UNRESOLVED) for name in (*self._always, *missed) if name not in found}
        self._take(found, list(welcome.values()))
        return list(welcome.values())

    def announce(self, start_from: str, run: str) -> None:
        """Register the first run of a job's query, before that does: its agents read their disks while Spark starts.

        An agent that does not take it now is registered by the query, which registers with all of them once more.
        """
        request = Register(self.consumer, start_from, resumed=False, run=run)
        agent_connections.ask_all(
            self._options.addresses(), lambda client: client.register(request), self._options.files, call=Call.REGISTER, logs=False
        )

    def begins(self, checks: Path) -> None:
        """A query begins, with this file for its checks for work: nothing is known yet of who answers it."""
        self._unanswered = agent_connections.unanswered_path(checks)
        self._unanswered.unlink(missing_ok=True)

    def _with_packed(self, status: Status) -> Status:
        """The answer with what is packed, known already and was not sent again."""
        brokers = [each.with_packed(lambda name, packed: packed or self._packed.get(name, "")) for each in status.broker_statuses]
        return replace(status, broker_statuses=brokers)

    def _down(self, name: str, reason: Reason, explanation: str = "") -> AgentStatus:
        status = self._statuses.get(name, AgentStatus(name=name, up=False))
        return replace(status, up=False, problems=(str(reason),), explanation=explanation)

    def _take(self, statuses: dict[str, AgentStatus], answered: list[Status]) -> None:
        now = self._clock()
        self._statuses = statuses
        self._observer.know(statuses.values(), now)
        apply(self._table, statuses.values(), answered)
        for status in answered:
            self._observer.published(status.agent, status.journal, status.total, now)
            self._table.mark_agent(status.agent, now)
            for part in status.catalog:
                self._take_catalog(status, part)
        self._table.set_reading(self._observer.reading())
        self._table.waiting.update(transaction_columns.answered(each for status in answered for each in status.pending))
        for name, known in statuses.items():
            if known.problems != self._logged.get(name, ()):
                say = log.warning if known.problems else log.info
                why = {"error": known.explanation} if known.explanation and not known.up else {}
                say(
                    "agent is up" if known.up else "agent is down",
                    extra={"agent": name, "problems": ",".join(known.problems) or "none"} | why,
                )
        for name in self._logged.keys() - statuses.keys():
            log.info("agent is no longer expected", extra={"agent": name})
        self._logged = {name: status.problems for name, status in statuses.items()}

    def _take_catalog(self, status: Status, part: CatalogPart) -> None:
        """Apply a part of a catalog. If it is not understood, the known catalog stays, and the next round requests the same part again."""
        before, known = self._catalogs.get(status.agent, (None, NOTHING_DECIDED))
        version = Version(part.version.process, part.version.number)
        if not part.whole and (before is None or before.process != version.process):
            return  # the changes are for another process of this name; this one is asked for its whole catalog
        try:
            catalog = unpack(part.changes, version, whole=part.whole).applied(known)
        except FormatError as error:
            log.error(
                "the agent's catalog cannot be read: is the agent of another version?", extra={"agent": status.agent, "error": str(error)}
            )
            return
        self._catalogs[status.agent] = version, catalog
        self._table.take_catalog(status.agent, catalog, End(status.journal, status.seq))

    def close(self) -> None:
        """Close the connections."""
        for address in self._options.addresses():
            agent_connections.client(address, self._options.files).close()


class ExpectedAgents:
    """Remembers since when agents that once took part have had no address.

    An address that is configured itself stays as long as the job runs. Behind a name (dns:///) addresses come and go with the pods.
    Only one thread uses it.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def missed(self, statuses: Mapping[str, AgentStatus], answering: Mapping[str, AgentStatus], now: float) -> list[str]:
        """Those of ``statuses`` that are not among ``answering`` and should be.

        An agent is not missed if agents that are up watch all of its log dirs: it was renamed, or moved. It is not missed either if it has
        had no address for an hour, and its brokers do not run or are not known: it was taken away with them. If a broker runs and no
        agent watches it, its agent is missed for as long as that lasts.

        Args:
            statuses: the agents of the last poll, also those that were down.
            answering: the agents that this poll has found at some address, up or down.
            now: seconds of `time.monotonic`.
        """
        away = {name: status for name, status in statuses.items() if status.brokers and name not in answering}
        self._since = {name: self._since.get(name, now) for name in away}
        watched = {directory for status in answering.values() if status.up for directory in status.directories}
        running = _running(answering.values())
        return [
            name
            for name, status in away.items()
            if not (status.directories and all(directory in watched for directory in status.directories))
            and (now - self._since[name] < GONE_SECONDS or running & set(status.brokers))
        ]


def _running(statuses: Iterable[AgentStatus]) -> set[int]:
    """Brokers that run, by the metadata of agents that are up, but are watched by none of these agents."""
    up = [status for status in statuses if status.up]
    watched = {broker for status in up for broker in status.brokers}
    brokers = each_broker(each for status in up for each in status.broker_statuses)
    return {each.broker for each in broker_phases(brokers) if each.phase is Phase.RUNNING} - watched


def _timed(client: AgentClient, request: StatusRequest) -> tuple[Status, float]:
    """Its status, and the time here in the middle of the call: other agents may take longer."""
    before = time.time()
    status = client.status(request)
    return status, (before + time.time()) / 2


def _shared(answers: Mapping[str, Status]) -> frozenset[str]:
    """Names of the agents that watch a log dir which another one watches too."""
    of_directory: dict[str, set[str]] = {}
    for status in answers.values():
        for directory in status.directories:
            of_directory.setdefault(directory, set()).add(status.agent)
    return frozenset(name for names in of_directory.values() if len(names) > 1 for name in names)


def status_of(status: Status, address: str, shared: frozenset[str], now: float | None, consumer: str = "") -> AgentStatus:
    """The status of an agent that answered, for the metrics of the job ``consumer``.

    Args:
        shared: agents that watch a log dir which another one watches too.
        now: Unix seconds, None where the agent's clock is this host's.
    """
    ahead = status.now_ms / 1000 - now if status.now_ms and now is not None else None
    problems = [Reason.SHARED_LOG_DIR] if status.agent in shared else []
    problems += [Reason.BLOCKED] if status.blocked else []
    problems += [Reason.TWIN_CONSUMER] if consumer in status.twins else []
    problems += [Reason.STUCK] if status.silent_seconds > STUCK_SECONDS else []
    problems += [Reason.CLOCK] if ahead is not None and abs(ahead) > CLOCK_SECONDS else []
    found = AgentStatus(
        name=status.agent,
        up=not {Reason.STUCK, Reason.TWIN_CONSUMER} & set(problems),
        address=address,
        brokers=tuple(status.brokers),
        cluster_id=status.cluster_id,
        catching_up=not status.caught_up,
        metadata_brokers=frozenset(status.brokers) - frozenset(status.unreadable_metadata),
        problems=tuple(map(str, problems)),
        clock_ahead_seconds=ahead,
        blocked=tuple(status.blocked),
        logs=status.logs,
        unreadable=tuple(status.unreadable),
        unreadable_logs=tuple(status.unreadable_logs),
        doubts=tuple(sorted(status.doubts.items())),
        log_dirs=tuple(status.log_dirs),
        broker_statuses=tuple(status.broker_statuses),
        directories=tuple(status.directories),
        scrubs=tuple(status.scrubs),
        unread_bytes=status.unread,
        started_ms=status.started_ms,
    )
    return by_our_clock(found)


def cluster_of(statuses: list[Status]) -> str:
    """The cluster that the agents of a new job watch; "" if none of them knows it, as with brokers before 2.4.

    Raises:
        AgentError: they watch several.
    """
    found = known_clusters(status.cluster_id for status in statuses)
    if len(found) > 1:
        of_each = "; ".join(
            f"{status.agent}: {status.cluster_id}" for status in sorted(statuses, key=lambda status: status.agent) if status.cluster_id
        )
        raise AgentError(
            f"the agents watch several clusters, and a job is for one ({of_each}): name those of one with --agents", Reason.OTHER_CLUSTER
        )
    return found[0] if found else ""


def file_options(settings: Settings) -> dict[str, str]:
    """The files of certificates and the token as options of the data source: their paths, which may be visible, never their content."""
    given = {name: getattr(settings, name) for name in _FILES}
    return {name: str(path.absolute()) for name, path in given.items() if path is not None}


def check_agents(settings: Settings) -> None:
    """Refuse settings that could never work, or would send a token unencrypted.

    Raises:
        UsageError: a file cannot be used, TLS has no CA, or a token would leave this machine without TLS.
    """
    files = ClientFiles(ca=settings.agent_ca, cert=settings.agent_cert, key=settings.agent_key, token_file=settings.agent_token_file)
    credentials(files)
    for target in settings.agents:
        encrypted = target.scheme is Scheme.TLS or (target.scheme is Scheme.NAME and files.ca is not None)
        if encrypted and files.ca is None:
            raise UsageError(f"--agents {target}: TLS needs the certificates of its CA: name --agent-ca (such as the machine's own bundle)")
        if not encrypted and files.token_file is not None and not is_loopback(target.address.host):
            raise UsageError(f"--agents {target}: the token is not sent without TLS: name --agent-ca, and write https:// for one agent")


class AgentPolls:
    """Any thread may call `landed`, one thread the rest.

    When a job asks its agents how they are: at each turn, but less often while all of them are well and no group commits. An answer
    costs a call on both sides, which is half of what an idle job spends. What is known of groups is as old as the answers.

    Args:
        clock: seconds of a clock that only goes forward.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._quiet_until = clock()
        self._landed = threading.Event()

    def landed(self) -> None:
        """A micro-batch is in the table: up to when each agent is processed shows only by an answer after it."""
        self._landed.set()

    @property
    def due(self) -> bool:
        """Whether to ask now."""
        return self._landed.is_set() or self._clock() >= self._quiet_until

    def begin(self) -> None:
        """Mark that agents are asked now: a micro-batch that lands meanwhile has them asked again."""
        self._landed.clear()

    def answered(self, *, quiet: bool) -> None:
        """They were asked; ``quiet``: all of them are well, and nothing else is as old as what they answer."""
        self._quiet_until = self._clock() + (QUIET_SECONDS if quiet else 0.0)
