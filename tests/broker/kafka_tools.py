"""Runs Kafka's own command-line tools, each in a JVM of its own, and returns what they print."""

import subprocess

from tests.broker.install import java_command
from tests.limits import SECONDS

TOOLS = {
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "configs": "kafka.admin.ConfigCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}

TopicPartition = tuple[str, int]


def run_tool(tool: str, *arguments: str) -> str:
    """Runs one of TOOLS and returns what it printed; its complaints are in the error when it fails."""
    command = java_command(TOOLS[tool], *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, f"{tool} {arguments} failed: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    return done.stdout
