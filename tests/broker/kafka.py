"""Starts, kills and stops real Kafka brokers on free loopback ports, in folders of the test's own."""

import base64
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests import witnesses
from tests.broker.install import BROKER_VERSION, FAST_START, LOG4J, java_command
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import until

HEAP_MB = 512
CONTROLLER_ID = 100
_PAUSE_SECONDS = 0.05
_CONNECT_SECONDS = 10
_TAKEN = "Address already in use"

# One small node: few threads and buffers, internal topics with few partitions; nothing that a test waits for takes long.
_SMALL = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "num.replica.fetchers": 1,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 6000,  # a killed node is fenced after this time, and one that has no processor for so long
    "broker.heartbeat.interval.ms": 500,
    "log.retention.check.interval.ms": 2000,
    "log.cleaner.backoff.ms": 1000,
    "log.cleaner.dedupe.buffer.size": 4194304,
    "log.cleaner.io.buffer.size": 131072,
}

# A broker must not outlive a test run that was killed: PR_SET_PDEATHSIG holds over the exec. Linux alone has it.
_DIES_WITH_PARENT = (
    (sys.executable, "-S", "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])")
    if sys.platform == "linux"
    else ()
)


@dataclass(frozen=True)
class Node:
    """One broker, controller or both, with two log dirs."""

    node_id: int
    directory: Path
    port: int
    controller_port: int
    roles: str = "broker,controller"

    @property
    def log_dirs(self) -> tuple[Path, Path]:
        return self.directory / "d0", self.directory / "d1"

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def log4j(self) -> Path:
        return self.directory / "log4j2.properties"

    @property
    def log(self) -> Path:
        """What the broker printed: the first place to look when a test against it fails."""
        return self.directory / "server.log"


class Kafka:
    """A formatted cluster below `directory`; its nodes are started and ended one by one or together.

    Args:
        directory: an empty folder of the caller's.
        nodes: 1, or 3 and more with every topic replicated three times.
        settings: lines of `server.properties` over the defaults of this module.
        controller: the controller is a process of its own, `CONTROLLER_ID`, so that brokers may be killed without the quorum.
        heap_mb: of each JVM.
        version: of the brokers.
        loggers: names of loggers that write at DEBUG into the log of a node.
    """

    def __init__(
        self,
        directory: Path,
        nodes: int = 1,
        settings: Mapping[str, object] | None = None,
        *,
        controller: bool = False,
        heap_mb: int = HEAP_MB,
        version: str = BROKER_VERSION,
        loggers: Sequence[str] = (),
    ) -> None:
        ports = free_ports(2 * nodes + 2)
        roles = "broker" if controller else "broker,controller"
        self.brokers = tuple(Node(i + 1, directory / f"n{i + 1}", ports[2 * i], ports[2 * i + 1], roles) for i in range(nodes))
        alone = (Node(CONTROLLER_ID, directory / "controller", ports[-2], ports[-1], "controller"),) if controller else ()
        self.nodes = (*alone, *self.brokers)
        self._heap_mb = heap_mb
        self.version = version
        self.cluster_id = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]  # a leading dash would be taken for an option
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for node in self.nodes:
            node.directory.mkdir(parents=True)
            lines = [f"logger.{number}.name = {name}\nlogger.{number}.level = DEBUG\n" for number, name in enumerate(loggers)]
            node.log4j.write_text("".join([LOG4J, *lines]))
            node.properties.write_text("".join(f"{key}={value}\n" for key, value in {**self._properties(node), **(settings or {})}.items()))
        self.format()

    @property
    def bootstrap(self) -> str:
        """Addresses for clients."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.brokers)

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """The log dirs of all brokers."""
        return tuple(log_dir for node in self.brokers for log_dir in node.log_dirs)

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [process.pid for process in self._running.values()]

    @property
    def down(self) -> list[int]:
        """The nodes that were not started, or were ended."""
        return [node.node_id for node in self.nodes if node.node_id not in self._running]

    def broker(self, node_id: int) -> Node:
        """One by its id."""
        return next(node for node in self.brokers if node.node_id == node_id)

    def start(self, *node_ids: int) -> None:
        """Starts these nodes, or all, and returns when they serve clients."""
        nodes = self._select(node_ids)
        for node in nodes:
            self._launch(node)
        for node in nodes:
            self._await_ready(node)

    def stop(self, *node_ids: int) -> None:
        """Ends these nodes, or all, cleanly and together: a combined quorum cannot finish a controlled shutdown one by one."""
        self._end(self._select(node_ids), signal.SIGTERM)

    def kill(self, *node_ids: int) -> None:
        """Ends these nodes, or all, as a crash does."""
        self._end(self._select(node_ids), signal.SIGKILL)

    def terminate(self, *node_ids: int) -> None:
        """Ends these nodes in an orderly way while others stay: they must not be needed for a majority of controllers."""
        self._end(self._select(node_ids), signal.SIGTERM)

    def freeze(self) -> None:
        """Lets no node do anything any more, so that what lies on disk stays as it is; after that they can only be killed."""
        for process in self._running.values():
            process.send_signal(signal.SIGSTOP)

    def configure(self, settings: Mapping[str, object]) -> None:
        """Other lines of `server.properties` for all nodes, from their next start on."""
        for node in self.nodes:
            with node.properties.open("a") as properties:
                properties.writelines(f"{key}={value}\n" for key, value in settings.items())

    def until(self, condition: Callable[[], bool], what: str, saw: Callable[[], object] | None = None) -> None:
        """Waits until something comes true on a running cluster; when it does not, ``saw`` tells how it is instead."""
        until(what, condition, saw=saw)

    def pause(self) -> None:
        """Lets a running cluster do something for a moment."""
        process = next(iter(self._running.values()))
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PAUSE_SECONDS)

    def format(self, *node_ids: int) -> None:
        """Kafka's own tool writes `meta.properties` into log dirs of these nodes, or all, that have none; a JVM a node, side by side."""
        formatting = []
        for node in self._select(node_ids):
            arguments = ("format", "--ignore-formatted", "-t", self.cluster_id, "-c", str(node.properties))
            command = java_command("kafka.tools.StorageTool", *arguments, version=self.version)
            formatting.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        output = [process.communicate()[0] for process in formatting]
        assert not any(process.returncode for process in formatting), output

    def _select(self, node_ids: Iterable[int]) -> list[Node]:
        wanted = set(node_ids) or {node.node_id for node in self.nodes}
        return [node for node in self.nodes if node.node_id in wanted]

    def _end(self, nodes: list[Node], how: signal.Signals) -> None:
        ending = [process for node in nodes if (process := self._running.pop(node.node_id, None))]
        for process in ending:
            process.send_signal(how)
        for process in ending:
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _launch(self, node: Node) -> None:
        options = (*FAST_START, "-Xms128m", f"-Dkafka.logs.dir={node.directory}", f"-Dlog4j2.configurationFile={node.log4j}")
        command = java_command("kafka.Kafka", str(node.properties), heap_mb=self._heap_mb, options=options, version=self.version)
        with node.log.open("ab") as log:
            process = subprocess.Popen(
                [*_DIES_WITH_PARENT, *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._running[node.node_id] = process
        witnesses.call(f"Kafka node {node.node_id}", lambda: witnesses.tail(node.log), lambda: process.poll() is None)

    def _await_ready(self, node: Node) -> None:
        """A broker opens its port to clients only when it is ready to serve them."""
        port = node.port if "broker" in node.roles else node.controller_port

        def serves() -> bool:
            if self._running[node.node_id].poll() is not None:
                output = witnesses.tail(node.log)
                assert _TAKEN in output, f"node {node.node_id} did not start:\n{output}"
                node.log.rename(node.log.with_suffix(".taken"))  # by a program that is no test's: it may let go of it
                self._launch(node)
            return _listens(port)

        until(f"node {node.node_id} serves", serves)

    def _properties(self, node: Node) -> dict[str, object]:
        copies = min(len(self.brokers), 3)
        listeners = {"broker": f"PLAINTEXT://127.0.0.1:{node.port}", "controller": f"CONTROLLER://127.0.0.1:{node.controller_port}"}
        voters = [each for each in self.nodes if "controller" in each.roles]
        of_brokers = {"advertised.listeners": listeners["broker"], "inter.broker.listener.name": "PLAINTEXT"}
        return {
            **_SMALL,
            "process.roles": node.roles,
            "node.id": node.node_id,
            "controller.quorum.voters": ",".join(f"{each.node_id}@127.0.0.1:{each.controller_port}" for each in voters),
            "listeners": ",".join(listeners[role] for role in node.roles.split(",")),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            **(of_brokers if "broker" in node.roles else {}),
            "log.dirs": ",".join(str(log_dir) for log_dir in node.log_dirs),
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": 1,
        }


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
