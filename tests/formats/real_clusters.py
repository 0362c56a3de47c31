"""Metadata logs of real clusters, and what Kafka's own tools said of their partitions."""

import csv
import shutil
from pathlib import Path

from streaming.simulator.log import LogDir

DATA = Path(__file__).parents[1] / "data" / "metadata"


CLUSTERS = ["kafka_3_9", "node_down", "three_nodes", "transactions", "unclean_election", "with_snapshots"]


Row = tuple[str, str, int, int, int, str, str]


def log_of(cluster: str) -> memoryview:
    return memoryview((DATA / cluster / "log.bin").read_bytes())


def expected(cluster: str) -> list[Row]:
    with (DATA / cluster / "expected.tsv").open(newline="") as file:
        return sorted(
            (r["topic"], r["topic_id"], int(r["partition"]), int(r["leader"]), int(r["leader_epoch"]), r["replicas"], r["isr"])
            for r in csv.DictReader(file, delimiter="\t")
        )


SEGMENT = "00000000000000000000.log"


def metadata_of(directory: LogDir, cluster: str) -> Path:
    """Lay the metadata log of a real cluster into a log dir, snapshots included."""
    folder = directory.path / "__cluster_metadata-0"
    folder.mkdir()
    shutil.copy(DATA / cluster / "log.bin", folder / SEGMENT)
    for snapshot in (DATA / cluster).glob("*.checkpoint"):
        shutil.copy(snapshot, folder / snapshot.name)
    return folder
