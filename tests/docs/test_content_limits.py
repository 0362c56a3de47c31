"""The limits on content that docs/security.md names are those of the code."""

import re
from importlib import import_module
from pathlib import Path

from tests.tables import each_row

_DOCS = Path(__file__).parents[2] / "docs" / "security.md"
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1, "characters": 1}
ROWS = dict(
    row.removeprefix("| ").split(" | ")[:2]
    for row in _DOCS.read_text(encoding="utf-8").partition("\n## Content\n")[2].partition("\n## ")[0].splitlines()
    if row.startswith("| ")
)


@each_row(
    ("what", "module", "name"),
    [
        ("a batch of a topic that a group stands inside", "kafka.formats.records", "MAX_TIMED_BYTES"),
        ("remembered answers about opened batches", "broker.ladder.stretch", "MOST_ANSWERS"),
        ("a batch of coordinators' logs or of the metadata log", "kafka.formats.records", "MAX_OPENED_BYTES"),
        ("records of such a batch", "kafka.formats.records", "MAX_OPENED_RECORDS"),
        ("a batch of `segtail dump --records`, a wrapper of magic 0 and 1", "kafka.formats.records", "MAX_RECORDS_BYTES"),
        ("the window of a zstd frame", "kafka.formats.decompression", "LARGEST_WINDOW_BYTES"),
        ("`meta.properties`, `partition.metadata`, `quorum-state`", "broker.disk.opening", "NAMES_BYTES"),
        ("`leader-epoch-checkpoint`", "broker.disk.opening", "EPOCHS_BYTES"),
        ("offset checkpoints", "broker.disk.opening", "CHECKPOINT_BYTES"),
        ("producer snapshots", "broker.disk.opening", "PRODUCERS_BYTES"),
        ("an index that is read whole", "broker.disk.opening", "INDEX_BYTES"),
        ("`server.properties`", "broker.disk.opening", "PROPERTIES_BYTES"),
        ("content of a file in a message", "errors", "MOST_QUOTED"),
        ("what a job unpacks of an agent's catalog", "common.catalog", "MOST_CATALOG_BYTES"),
        ("the name of an agent", "broker.protocol.json_values", "NAME_CHARACTERS"),
        ("a sum of a log's counts", "common.column_types", "MOST_SUM"),
        ("what a job unpacks of an agent's counts", "broker.protocol.cluster_messages", "MOST_COUNTS_BYTES"),
        ("values of a message", "broker.protocol.json_values", "MOST_VALUES"),
        ("values of a request to an agent", "broker.agent.call_answers", "REQUEST_VALUES"),
        ("a text in a message", "broker.protocol.json_values", "MOST_CHARACTERS"),
        ("an answer of an agent that is kept whole", "spark.client.agent_client", "ANSWER_BYTES"),
        ("an answer of one message, with its head and all that is before it", "spark.client.agent_client", "MESSAGE_BYTES"),
        ("a status with a catalog", "spark.client.agent_client", "STATUS_BYTES"),
        ("a number that a row counts", "spark.client.column_versions", "MOST_COUNTED"),
    ],
)
def test_each_limit_of_content_is_that_of_the_code(what: str, module: str, name: str) -> None:
    found = re.match(r"(?:(?:0 to )?2\^)?([\d,]+) ?(\w*)", ROWS[what])
    assert found is not None
    number = int(found[1].replace(",", ""))
    limit = 1 << number if "2^" in found[0] else number * _UNITS[found[2]]
    assert getattr(import_module(f"streaming.{module}"), name) == limit
