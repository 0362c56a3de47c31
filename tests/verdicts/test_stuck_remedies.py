"""What is offered for a transaction that is stuck: never the end by hand shortly before it comes by itself, nor where nobody knows it."""

from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.transaction_problems import NEAR_MS, StuckTransaction, owner_of, remedy_of
from streaming.common.units import TimeWords
from tests.builders import NOW
from tests.tables import each_row

HOUR = 3_600_000
ENDS, ASKS = "forceTerminateTransaction --transactionalId pay", "describe --transactional-id pay"


def offered(verdict: str, left_ms: int, transactional_id: str = "pay", loss_ms: int = -1) -> tuple[str, str]:
    deadline_ms = -1 if left_ms < 0 else NOW + left_ms
    stuck = StuckTransaction(transactional_id=transactional_id, verdict=verdict, deadline_ms=deadline_ms, loss_ms=loss_ms)
    remedy = remedy_of(stuck, Commands(server="k:9092"), TimeWords(NOW))
    return remedy.command.line.removeprefix("kafka-transactions.sh --bootstrap-server k:9092 "), remedy.advice


@each_row(
    "verdict, left_ms, command",
    [
        ("open", HOUR, ENDS),
        ("open", NEAR_MS, ENDS),
        ("open", NEAR_MS - 1, ASKS),
        ("open", -1, ENDS),
        ("completing", HOUR, ASKS),
        ("unknown", HOUR, ""),
        ("unclaimed", -1, ""),
    ],
)
def test_a_command_that_ends_it_is_offered_only_where_a_coordinator_has_it_for_long(verdict: str, left_ms: int, command: str) -> None:
    assert offered(verdict, left_ms)[0] == command


def test_until_when_its_coordinator_leaves_it_open_is_reported() -> None:
    assert offered("open", HOUR)[1].startswith("its coordinator ends it at 2023-11-14T23:13:20Z (in 1h) if its producer does not. ")
    assert "Until then stop its producer" in offered("open", NEAR_MS - 1)[1]
    assert offered("open", -1)[1].startswith("when its coordinator ends it is not known. ")


def test_without_an_id_there_is_no_command() -> None:
    assert offered("open", HOUR, transactional_id="")[0] == ""


def test_the_command_is_there_to_the_end_where_records_are_lost_before_the_coordinator_ends_it() -> None:
    command, advice = offered("open", NEAR_MS - 1, loss_ms=NOW + 60_000)
    assert command == ENDS
    assert advice.startswith(
        "groups that wait for it lose records at 2023-11-14T22:14:20Z (in 1m), and its coordinator ends it only at "
        "2023-11-14T22:18:19Z (in 5m). If its producer is gone, and only then, the command ends it at once"
    )
    assert offered("open", NEAR_MS - 1, loss_ms=NOW + NEAR_MS)[0] == ASKS


@each_row(
    "transactional_id, owner",
    [
        ("orders-sink-3-1417", "a sink of Flink"),
        ("-0-1", "a sink of Flink"),
        ("Sink: Unnamed-cbc357ccb763df2852fee8c4fc7d55f2-12", "a sink of Flink"),
        ("app-4f8b1c2e-0d3a-4b5c-8d6e-0123456789ab-2", "an application of Kafka Streams"),
        ("app-4f8b1c2e-0d3a-4b5c-8d6e-012345678901-StreamThread-1", "an application of Kafka Streams"),
        ("my-app-0_11", "an application of Kafka Streams"),
        ("connect-cluster-east-1-2", "Kafka Connect"),
        ("east-jdbc-orders-0", "a source task of Kafka Connect, or a producer of Spring"),
        ("tx-0", "a source task of Kafka Connect, or a producer of Spring"),
        ("pay", None),
        ("checkout1", None),
        ("batch-2026-01-05", "a source task of Kafka Connect, or a producer of Spring"),
        ("", None),
        ("redacted-0123456789abcdef-1-2", None),
    ],
)
def test_the_form_of_an_id_shows_whose_it_probably_is(transactional_id: str, owner: str | None) -> None:
    found = owner_of(transactional_id)
    assert (None if found is None else found.name) == owner


@each_row("left_ms", [HOUR, NEAR_MS - 1, -1])
def test_what_flink_has_checkpointed_is_never_to_be_ended(left_ms: int) -> None:
    command, advice = offered("open", left_ms, transactional_id="orders-sink-3-1417", loss_ms=NOW + 60_000)
    assert command == "describe --transactional-id orders-sink-3-1417"
    assert "By its id it is probably of a sink of Flink: what its last checkpoint has of the transaction is lost if the" in advice
    assert "never force its end" in advice


@each_row("left_ms, loss_ms", [(HOUR, -1), (HOUR, NOW + 60_000), (NEAR_MS - 1, -1), (-1, -1)])
def test_a_deadline_what_to_do_and_whose_it_is_are_a_sentence_each(left_ms: int, loss_ms: int) -> None:
    _, advice = offered("open", left_ms, transactional_id="my-app-0_11", loss_ms=loss_ms)
    assert len(advice.split(". ")) == 3


def test_of_others_it_is_said_what_their_end_costs() -> None:
    command, advice = offered("open", HOUR, transactional_id="my-app-0_11")
    assert command == "forceTerminateTransaction --transactionalId my-app-0_11"
    assert ". By its id it is probably of an application of Kafka Streams: it commits what it has read in the same" in advice
    assert (
        ". By its id it is perhaps of a source task of Kafka Connect, or a producer of Spring: a source" in offered("open", HOUR, "tx-0")[1]
    )
