"""What shows the cause of blocked retention, and that every reason has its words."""

from streaming.cluster.verdicts.commands import (
    ACTIVE,
    FUTURE,
    HEAD_OF_LINE,
    HIGH_WATERMARK,
    MOVING,
    REMEDIES,
    REMOTE,
    Command,
    Commands,
    shows,
)
from streaming.rules.retention_rule import BLOCKED
from tests.tables import each_row

HERE = Commands(server="kafka-1:9092", asked="--job http://kafka-1:9712")


def test_every_reason_has_its_words() -> None:
    assert tuple(REMEDIES) == BLOCKED


@each_row(
    ("reason", "line"),
    [
        (FUTURE, "segtail dump --from-time \"$(($(date +%s) + 60))\" '/d/a b-0'"),
        (HIGH_WATERMARK, "kafka-topics.sh --bootstrap-server kafka-1:9092 --describe --topic orders"),
        (REMOTE, "segtail transactions --job http://kafka-1:9712 orders"),
        (HEAD_OF_LINE, "segtail retention --job http://kafka-1:9712 orders"),
        (MOVING, "segtail retention --job http://kafka-1:9712 orders"),
        (ACTIVE, "segtail retention --job http://kafka-1:9712 orders"),
    ],
)
def test_the_command_shows_what_blocks(reason: str, line: str) -> None:
    assert shows(reason, HERE, "orders", "/d/a b-0") == Command(line)


def test_without_a_directory_there_is_no_command_that_reads_it() -> None:
    assert shows(FUTURE, HERE, "orders", "") == Command(reason="the log dir is not known")
