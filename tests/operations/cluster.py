"""Three hosts with a broker and an agent each, a fourth that may join, a controller, a job, and Prometheus with Alertmanager on it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.alerts.monitoring import Monitoring, Page, free_addresses, monitoring
from tests.alerts.rendering import Addresses
from tests.alerts.shortening import shortened_options
from tests.broker.kafka import CONTROLLER_ID, Kafka
from tests.operations.recording import Recorder
from tests.operations.scrapes import CONTENT_TYPE, Scrapes
from tests.operations.traffic import AUDIT, READERS, Traffic
from tests.ports import free_ports
from tests.processes import until
from tests.serving import answering
from tests.worlds.services import AGENT, ALL, Service

HOSTS = (1, 2, 3)
NEWCOMER = 4
"""A host that is there from the beginning and runs nothing until it is asked to."""

_HEAP_MB = 256
_JOB_OPTIONS = ("--spark", "spark.driver.memory=512m", "--set", "state_shards=4")


def broker_settings(factor: int) -> dict[str, object]:
    """Kafka's own times, divided as those of the alerts are, where brokers can be as fast."""
    return {
        "broker.session.timeout.ms": 6_000,
        "broker.heartbeat.interval.ms": 1_000,
        "replica.lag.time.max.ms": 10_000,
        "leader.imbalance.check.interval.seconds": 300 // factor,
        "log.retention.check.interval.ms": 300_000 // factor,
        "transaction.state.log.min.isr": 2,
        "transaction.max.timeout.ms": 7_200_000,  # a transaction stays open while a job that is new knows nothing for twenty minutes
        "transaction.partition.verification.enable": "false",  # as before Kafka verified them: hanging ones can be written
    }


class Cluster:
    """All of it, up. ``combined`` nodes are the quorum themselves: there is no controller besides, and no host that may join."""

    def __init__(self, directory: Path, factor: int, stack: ExitStack, *, combined: bool) -> None:
        self.factor = factor
        self._directory = directory
        self._ports = dict(zip((*HOSTS, NEWCOMER), free_ports(4), strict=True))
        self._options = [word for name, value in shortened_options(factor).items() for word in ("--set", f"{name}={value}")]
        nodes = len(HOSTS) if combined else len(self._ports)
        self.kafka = Kafka(directory / "kafka", nodes, broker_settings(factor), controller=not combined, heap_mb=_HEAP_MB)
        stack.callback(self.kafka.kill)
        if not combined:
            self.kafka.start(CONTROLLER_ID)
        self.kafka.start(*HOSTS)
        self.traffic = Traffic(self.kafka)
        stack.enter_context(self.traffic.running())
        self._stack = stack
        self._jobs = 0
        self._processes = directory / "processes"
        self._processes.mkdir()
        self.agents = {host: self._agent(host) for host in HOSTS}
        self._target, *others = free_addresses(5)
        self.job = self._job(HOSTS)
        until("the job tells of all brokers and their topics", self._reported)
        scraped, *others = others
        self.scrapes = Scrapes(self._target)
        stack.enter_context(answering(self.scrapes.answer, int(scraped.rpartition(":")[2]), CONTENT_TYPE))
        addresses = Addresses(**dict(zip(("target", "prometheus", "alertmanager", "webhook"), (scraped, *others), strict=True)))
        (directory / "monitoring").mkdir()
        self.pages: list[Page] = []
        self.monitoring: Monitoring = stack.enter_context(monitoring(directory / "monitoring", addresses, self.pages.append, factor=factor))
        self.recorder = Recorder(self.monitoring, self.pages)

    def add_host(self, host: int) -> None:
        """A broker, its agent, and the job that is started again with the longer list of agents."""
        self.kafka.start(host)
        self.agents[host] = self._agent(host)
        self.job.kill(ALL)
        self.job = self._job(tuple(self.agents))

    def remove_host(self, host: int) -> None:
        """Its agent ends, and the job is started again without it; the broker is the caller's."""
        self.agents.pop(host).end()
        self.job.kill(ALL)
        self.job = self._job(tuple(self.agents))

    def kill_host(self, host: int) -> None:
        """Broker and agent at once, as when a host dies."""
        self.agents[host].kill(AGENT)
        self.kafka.kill(host)

    def start_host(self, host: int) -> None:
        """Both again."""
        self.agents[host].start()
        self.kafka.start(host)

    def restart_job(self) -> None:
        """Kill -9 of all its processes, and a new start as a supervisor does it."""
        self.job.kill(ALL)
        self.job.start()

    def add_twin(self) -> Service:
        """A second job on the same agents, which Prometheus scrapes as another instance of the first."""
        (listen,) = free_addresses(1)
        twin = self._job(tuple(self.agents), listen=listen, checkpoint=f"checkpoint-{self._jobs}")
        until("the twin answers", lambda: "segtail_agent_up" in {series.name for series in twin.running.page()})
        self.monitoring.scrape(self.monitoring.addresses.target, listen)
        return twin

    def remove_twin(self) -> None:
        """It is no target any more."""
        self.monitoring.scrape(self.monitoring.addresses.target)

    @contextmanager
    def stopped(self, service: Service) -> Iterator[None]:
        """None of its processes does anything inside the block."""
        family = service.running.family
        for process in family:
            os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in family:
                os.kill(process.pid, signal.SIGCONT)

    def idle(self, seconds: float) -> None:
        """Let so much time pass, shortened."""
        threading.Event().wait(seconds / self.factor)

    @property
    def scratch(self) -> Path:
        """For files of tools."""
        return self._directory / "scratch"

    def _agent(self, host: int) -> Service:
        dirs = ",".join(map(str, self.kafka.broker(host).log_dirs))
        listen = f"127.0.0.1:{self._ports[host]}"
        arguments = ("agent", "--log-dirs", dirs, "--listen", listen, "--name", f"host-{host}")
        service = self._service(f"agent-{host}", arguments)
        until(f"the agent of host {host} listens", lambda: "agent listens" in service.running.stated)  # a job that is refused waits long
        return service

    def _job(self, hosts: tuple[int, ...], listen: str = "", checkpoint: str = "checkpoint") -> Service:
        agents = ",".join(f"http://127.0.0.1:{self._ports[host]}" for host in hosts)
        properties = ",".join(str(broker.properties) for broker in self.kafka.brokers)
        where = ("--checkpoint", self._directory / checkpoint, "--listen", listen or self._target)
        arguments = ("run", "--agents", agents, "--server-properties", properties, "--from", "earliest", *where)
        self._jobs += 1
        return self._service(f"job-{self._jobs}", (*arguments, *_JOB_OPTIONS, *self._options))

    def _service(self, name: str, arguments: tuple[object, ...]) -> Service:
        service = Service(name, arguments, self._processes)
        self._stack.callback(service.end)
        return service

    def _reported(self) -> bool:
        page = self.job.running.page()
        up = [value for series, value in page.items() if series.name == "segtail_agent_up"]
        groups = {dict(series.labels)["group"] for series in page if series.name == "segtail_group_lag_offsets"}
        return up == [1.0] * len(HOSTS) and any(("topic", AUDIT) in series.labels for series in page) and groups == READERS.keys()


@contextmanager
def cluster(directory: Path, factor: int, *, combined: bool = False) -> Iterator[Cluster]:
    """One that does not outlive the block, calm."""
    directory.mkdir(exist_ok=True)
    with ExitStack() as stack:
        made = Cluster(directory, factor, stack, combined=combined)
        until("nothing fires", _lasting(made.recorder.calm), saw=lambda: (made.recorder.firing(), made.recorder.pending()))
        yield made


def _lasting(holds: Callable[[], bool], looks: int = 40) -> Callable[[], bool]:
    """True when it held at so many looks in a row."""
    streak = 0

    def look() -> bool:
        nonlocal streak
        streak = streak + 1 if holds() else 0
        return streak >= looks

    return look
