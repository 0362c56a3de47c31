"""Groups whose committed offsets are moved: by Kafka's tool, by admin clients, by reset policies, by consumers that seek, by programs."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.clients import create_topic, delete_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, Record, lab
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.resting import rest

ORDERS, CUT, ANEW = "orders", "cut", "anew"
STEP = 10
"""A consumer of orders-1 goes on by so many records from commit to commit."""

CUT_BEFORE = 6
"""The first record of the topic that is left."""

FAR = 10_000
"""Beyond the end of every log."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to a group's offset. ``records``: what a consumer of committed data gets between both, at that moment."""

    group: str
    topic: str
    partition: int
    before: int
    offset: int
    kind: str
    records: int


class Moving:
    """Moves offsets, and notes it."""

    def __init__(self, kafka: Kafka, clients: Lab) -> None:
        self.done: list[Done] = []
        self._bootstrap, self._clients = kafka.bootstrap, clients
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

    def note(self, group: str, partition: int, before: int, offset: int, kind: str, topic: str = ORDERS) -> None:
        """What was done to an offset, with what a consumer gets between."""
        end = self._clients.ends()[topic, partition].high_watermark
        first, last = sorted((min(before, end), min(offset, end)))
        left, right = (self._count(topic, partition, each) if each < end else 0 for each in (first, last))
        self.done.append(Done(group, topic, partition, before, offset, kind, left - right))

    def _count(self, topic: str, partition: int, offset: int) -> int:
        """What a consumer of committed data gets from an offset on."""
        return self._clients.consume("read_committed", [(topic, partition, offset)])[0].records

    def by_tool(self, group: str, partition: int, *to: str) -> None:
        """Kafka's own tool."""
        where = ("--bootstrap-server", self._bootstrap, "--group", group, "--topic", f"{ORDERS}:{partition}")
        run_tool("groups", *where, "--reset-offsets", *to, "--execute")

    def by_client(self, group: str, partition: int, offset: int, topic: str = ORDERS) -> None:
        """An admin client."""
        asked = ConsumerGroupTopicPartitions(group, [Partition(topic, partition, offset)])
        self._admin.alter_consumer_group_offsets([asked])[group].result(SECONDS)

    def console(self, group: str, topic: str, *more: str, reset: str) -> None:
        """A consumer that subscribes, follows its reset policy where it has to, commits where it is, and leaves."""
        policy = ("--consumer-property", f"auto.offset.reset={reset}")
        run_tool("console-consumer", "--bootstrap-server", self._bootstrap, "--topic", topic, "--group", group, *policy, *more)

    def read_one(self, group: str, topic: str) -> None:
        """A consumer that subscribes, goes to the earliest record where it has to, and commits the first that it gets, in one partition."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        consumer.subscribe([topic])
        record = None
        while record is None or record.error() or (topic == ORDERS and record.partition() != 1):
            record = consumer.poll(0.2)
        consumer.commit(message=record, asynchronous=False)
        consumer.close()

    def delete_records(self, topic: str, before: int) -> None:
        """What a topic's first partition has before an offset."""
        self._admin.delete_records([Partition(topic, 0, before)])[Partition(topic, 0)].result(SECONDS)

    def committed(self, group: str, topic: str, partition: int) -> int:
        """Where a group is by its coordinator, -1 if it is nowhere."""
        found = {(each.group, each.topic, each.partition): each.offset for each in self._clients.commits()}
        return found.get((group, topic, partition), -1)


def make(making: Making) -> None:
    """The states are `before` and `after` the moves; the answer `done` has these."""
    kafka = Kafka(making.directory / "kafka", version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        clients = stack.enter_context(lab(kafka.bootstrap, making.directory / "lab.log"))
        moving = Moving(kafka, clients)
        fill(kafka, clients)
        work(clients)
        at_rest(kafka, clients)
        making.disk(kafka, "before")

        by_hand(moving, clients)
        by_members(moving, clients)
        by_programs(moving, clients)
        ended(kafka, moving)
        at_rest(kafka, clients)
        making.answer("done", [asdict(each) for each in moving.done], by="who moved offsets, and Kafka's Java consumer, that counts")
        making.disk(kafka, "after")


def fill(kafka: Kafka, clients: Lab) -> None:
    """Orders with transactions among plain records, in the first partition."""
    create_topic(kafka.bootstrap, ORDERS, 3)
    for topic in (CUT, ANEW):
        create_topic(kafka.bootstrap, topic)
    clients.produce(ORDERS, 0, records(3, 8))
    for number, commit in enumerate((True, False, True)):
        with clients.transaction(f"writer {number}", commit=commit):
            clients.produce(ORDERS, 0, records(2, 3), transaction=f"writer {number}")
        clients.produce(ORDERS, 0, records(1, 4))
    clients.produce(ORDERS, 1, records(30, 10))
    clients.produce(ORDERS, 2, records(4, 10))
    clients.produce(CUT, 0, records(2, 5))
    clients.produce(ANEW, 0, records(2, 5))


def work(clients: Lab) -> None:
    """What groups have committed by reading; most of them have no member any more."""
    clients.commit("by-hand", "classic", [(ORDERS, 0, 20), (ORDERS, 1, 10), (ORDERS, 2, 30)])
    clients.commit("by-client", "consumer", [(ORDERS, 0, 10)])
    for group in ("beyond-earliest", "beyond-latest", "set-back"):
        clients.commit(group, "classic", [(ORDERS, 1, 10)])
    clients.commit("below", "classic", [(CUT, 0, 2)])
    clients.commit("mirrored", "classic", [(ORDERS, 0, 10)])
    clients.commit("deleted", "classic", [(ORDERS, 2, 30)])
    clients.commit("anew", "classic", [(ANEW, 0, 9)])
    for group in ("by-hand", "by-client", "beyond-earliest", "beyond-latest", "set-back", "below", "mirrored", "deleted", "anew"):
        clients.ask("leave", group=group)
    for offset in range(0, 201, STEP):
        clients.commit("seeks", "classic", [(ORDERS, 1, offset)])
    clients.commit("assigned", "assign", [(ORDERS, 2, 30)])
    in_transaction(clients, 30, commit=True)


def by_hand(moving: Moving, clients: Lab) -> None:
    """Forwards, backwards, both, and back to where it was; what another one has moved beyond the end is a reset policy's then."""
    ends = {partition: clients.ends()[ORDERS, partition].high_watermark for partition in range(3)}
    moving.by_tool("by-hand", 0, "--to-latest")
    moving.note("by-hand", 0, 20, ends[0], "admin")
    moving.by_tool("by-hand", 1, "--to-offset", "3")
    moving.note("by-hand", 1, 10, 3, "admin")
    moving.by_tool("by-hand", 2, "--to-latest")
    moving.note("by-hand", 2, 30, ends[2], "admin")
    moving.by_tool("by-hand", 2, "--to-offset", "12")
    moving.note("by-hand", 2, ends[2], 12, "admin")
    moving.by_client("by-client", 0, 33)
    moving.note("by-client", 0, 10, 33, "admin")
    moving.by_client("set-back", 1, 250)
    moving.note("set-back", 1, 10, 250, "admin")
    moving.by_client("set-back", 1, 10)
    moving.note("set-back", 1, 250, 10, "admin")
    for group in ("beyond-earliest", "beyond-latest"):
        moving.by_client(group, 1, FAR)
        moving.note(group, 1, 10, FAR, "admin")


def by_members(moving: Moving, clients: Lab) -> None:
    """By reset policies, and by a consumer that seeks: a little back, far back, forwards."""
    end = clients.ends()[ORDERS, 1].high_watermark
    moving.read_one("beyond-earliest", ORDERS)
    moving.note("beyond-earliest", 1, FAR, 1, "reset")
    moving.console("beyond-latest", ORDERS, "--timeout-ms", "8000", reset="latest")
    assert moving.committed("beyond-latest", ORDERS, 1) == end
    moving.note("beyond-latest", 1, FAR, end, "reset")
    moving.delete_records(CUT, CUT_BEFORE)
    moving.read_one("below", CUT)
    assert moving.committed("below", CUT, 0) == CUT_BEFORE + 1
    for before, offset in ((200, 195), (195, 200), (200, 50), (50, 290)):
        clients.commit("seeks", "classic", [(ORDERS, 1, offset)])
        if offset < before:
            moving.note("seeks", 1, before, offset, "consumer")


def by_programs(moving: Moving, clients: Lab) -> None:
    """By assign(), by transactions, and by what goes on and on in a group without members."""
    clients.commit("assigned", "assign", [(ORDERS, 2, 5)])
    clients.commit("assigned", "assign", [(ORDERS, 2, 35)])
    moving.note("assigned", 2, 30, 5, "external")
    in_transaction(clients, 3, commit=False)
    in_transaction(clients, 7, commit=True)
    moving.note("in-transactions", 2, 30, 7, "external")
    for offset in range(11, 16):
        moving.by_client("mirrored", 0, offset)
    moving.by_client("mirrored", 0, 12)
    moving.note("mirrored", 0, 15, 12, "external")


def ended(kafka: Kafka, moving: Moving) -> None:
    """Histories that end: offsets that are deleted, and a topic that is made anew."""
    run_tool("groups", "--bootstrap-server", kafka.bootstrap, "--delete-offsets", "--group", "deleted", "--topic", ORDERS)
    moving.by_client("deleted", 2, 3)
    delete_topic(kafka.bootstrap, ANEW)
    kafka.until(lambda: moving.committed("anew", ANEW, 0) < 0, "the coordinator has deleted what was committed of the topic")
    create_topic(kafka.bootstrap, ANEW)
    moving.by_client("anew", 0, 0, topic=ANEW)


def in_transaction(clients: Lab, offset: int, *, commit: bool) -> None:
    with clients.transaction("reader", commit=commit):
        clients.ask("commit_in_transaction", transaction="reader", group="in-transactions", offsets=[(ORDERS, 2, offset)])


def records(batches: int, size: int) -> Sequence[Sequence[Record]]:
    """Batches of so many records each."""
    return [[(None, 20, None)] * size for _ in range(batches)]


def at_rest(kafka: Kafka, clients: Lab) -> None:
    """Waits until checkpoints have all that was written, so that a disk that is kept shows it."""
    rest(kafka, {partition: ends.high_watermark for partition, ends in clients.ends().items()})
