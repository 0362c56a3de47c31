"""The parts of a job that is spread over machines, all on this one: brokers, agents with TLS and tokens, Spark, and the job."""

import contextlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_totals
from tests.certificates import Authority, token_file
from tests.cluster.standalone import standalone
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import Counts, Page, Sample, Segtail, exported, segtail, until

METADATA = "__cluster_metadata"
"""Grows while we look at it, and no client can ask for its end."""

Counted = dict[tuple[str, int], Counts]


class SpreadJob:
    def __init__(self, directory: Path, kafka: Kafka, java_home: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.kafka = kafka
        self._stack = stack
        self._authority = Authority(directory / "tls")
        self._token = token_file(directory / "token")
        self._ports = dict(zip((node.node_id for node in kafka.nodes), free_ports(len(kafka.nodes)), strict=True))
        self.agents = {number: self.start_agent(number) for number in self._ports}
        self.spark = stack.enter_context(standalone(directory / "spark", java_home))
        job = self._authority.issue("job", "job")
        config = directory / "job.yaml"
        config.write_text("spark: {spark.test.secret: never-shown}\n")
        arguments = (
            *("run", "--agents", ",".join(f"https://127.0.0.1:{port}" for port in self._ports.values())),
            *("--agent-ca", self._authority.ca, "--agent-cert", job.cert, "--agent-key", job.key, "--agent-token-file", self._token),
            *("--master", self.spark.master, "--spark", "spark.executor.memory=512m", "--spark", "spark.driver.host=127.0.0.1"),
            *("--spark", "spark.driver.bindAddress=127.0.0.1", "--config", config, "--from", "earliest"),
            *("--spark-checkpoint", (directory / "state").as_uri(), "--checkpoint", directory / "checkpoint", "--listen", "127.0.0.1:0"),
        )
        self.job = stack.enter_context(segtail(*arguments, stated=directory / "job.said"))

    def until(self, what: str, look: Callable[[], object]) -> None:
        """Look again and again, as long as the job runs."""

        def look_on() -> object:
            assert self.job.running(), self.job.stated
            return look()

        until(what, look_on, saw=self.counted)

    def start_agent(self, number: int) -> Segtail:
        """The agent beside a broker, as a process of its own."""
        (node,) = (node for node in self.kafka.nodes if node.node_id == number)
        own = self._authority.issue(f"agent-{number}")
        arguments = (
            *("agent", "--log-dirs", ",".join(map(str, node.log_dirs))),
            *("--name", f"agent-{number}", "--listen", f"127.0.0.1:{self._ports[number]}", "--metrics-listen", "127.0.0.1:0"),
            *("--tls-cert", own.cert, "--tls-key", own.key, "--tls-client-ca", self._authority.ca, "--token-file", self._token),
        )
        return self._stack.enter_context(segtail(*arguments, stated=self.directory / f"agent-{number}.said"))

    def counted(self, page: Page | None = None) -> Counted:
        """What the job exports."""
        return {key: counts for key, counts in exported(self.job.page() if page is None else page).items() if key[0] != METADATA}

    def stated_by_kafka(self, number: int) -> Counted:
        """Every partition of a cluster at rest, by Kafka's own tools, over the log dirs of one broker."""
        ends = end_offsets(self.kafka)
        (node,) = (node for node in self.kafka.nodes if node.node_id == number)
        totals = {key: value for key, value in log_totals(node.log_dirs).items() if key[0] != METADATA}
        return {key: Counts(value.bytes, value.data_batches, value.data_records, ends[key]) for key, value in totals.items()}

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition, as the brokers tell."""
        reported = AdminClient({"bootstrap.servers": self.kafka.bootstrap}).list_topics(topic, timeout=SECONDS).topics[topic].partitions
        return {partition: state.leader for partition, state in reported.items()}

    def exported_from(self, topic: str) -> dict[int, int]:
        """The broker from which each partition is exported."""
        found = {}
        for series in self.job.page():
            labels = dict(series.labels)
            if series.name == "segtail_partition_log_end_offset" and labels["topic"] == topic:
                found[int(labels["partition"])] = int(labels["broker"])
        return found

    def up(self, number: int) -> float | None:
        """`segtail_agent_up` of the agent beside a broker."""
        labels = frozenset({("broker", str(number)), ("agent", f"agent-{number}")})
        return self.job.page().get(Sample("segtail_agent_up", labels))

    def until_counted(self, number: int) -> None:
        """Wait until what is exported is what the tools say."""
        expected = self.stated_by_kafka(number)
        assert expected
        self.until(f"the job exports {expected}", lambda: self.counted() == expected)

    def commands(self) -> str:
        """All command lines of the job and the agents, as everybody may see them."""
        return "\n".join(process.command for each in (self.job, *self.agents.values()) for process in each.family)

    def written(self, where: Path) -> bytes:
        """Everything that stands in the files below a folder, in which others write."""
        found = []
        for folder, _, names in os.walk(where):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    path = Path(folder, name)
                    if path.is_file():  # an agent's socket is none
                        found.append(path.read_bytes())
        return b"".join(found)
