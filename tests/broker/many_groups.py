"""Thousands of groups that commit at once, round after round, while groups come and go, and the offsets that they have then."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.limits import SECONDS
from tests.processes import until

TOPIC, PARTITIONS = "scaled", 3
_KINDS = 50
"""So many groups have different offsets, and then the next have the same ones."""

_GONE_AT_ONCE = 20
_RETRIABLE = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
}
"""What a coordinator may answer until it is ready."""

Answers = Mapping[str, "Future[ConsumerGroupTopicPartitions]"]


def first_offset(group: str, partition: int) -> int:
    """What a group has committed in a partition before the first round, if it had."""
    return int(group.rpartition("-")[2]) % _KINDS + partition


class ManyGroups:
    """Groups without members. In round n each commits `first_offset` + n of all partitions.

    ``begun``: the last round that was begun; ``done``: the last one that the coordinators have acknowledged of all groups. ``gone``: groups
    that were deleted, acknowledged. ``failed``: what has ended the rounds before their time.
    """

    def __init__(self, bootstrap: str, count: int) -> None:
        self.names = [f"group-{number}" for number in range(count)]
        self.begun = self.done = 0
        self.gone: set[str] = set()
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self.failed: list[BaseException] = []

    def commit(self) -> None:
        """One round of all groups at once."""
        self.begun += 1
        self._commit(self.names, self.begun)
        self.done = self.begun

    def come_and_go(self) -> None:
        """Some groups commit once, and are deleted."""
        names = [f"gone-{len(self.gone) + number}" for number in range(_GONE_AT_ONCE)]
        self._commit(names, 1)
        self._repeat("groups are deleted", names, self._admin.delete_consumer_groups)
        self.gone.update(names)

    def answered(self) -> dict[tuple[str, str, int], int]:
        """The committed offsets of these groups that their coordinators answer."""

        def ask(names: Sequence[str]) -> Answers:
            return {name: self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name] for name in names}

        answers = self._repeat("coordinators answer", self.names, ask)
        return {(name, of.topic, of.partition): of.offset for name, answer in answers.items() for of in answer.topic_partitions or ()}

    def right(self) -> dict[tuple[str, str, int], int]:
        """The committed offsets after the last round."""
        return {(name, TOPIC, each): first_offset(name, each) + self.done for name in self.names for each in range(PARTITIONS)}

    @contextmanager
    def running(self) -> Iterator[None]:
        """They commit all the time inside the block."""
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(SECONDS)
        assert not self.failed, self.failed

    def _run(self, ended: threading.Event) -> None:
        try:
            while not ended.is_set():
                self.commit()
                self.come_and_go()
        except Exception as error:  # noqa: BLE001 - it is reported where the block ends
            self.failed.append(error)

    def _commit(self, names: Sequence[str], number: int) -> None:
        def ask(names: Sequence[str]) -> Answers:
            return {name: self._admin.alter_consumer_group_offsets([_committed(name, number)])[name] for name in names}

        self._repeat("coordinators take commits", names, ask)

    def _repeat(
        self, what: str, names: Sequence[str], ask: Callable[[Sequence[str]], Mapping[str, "Future[ConsumerGroupTopicPartitions]"]]
    ) -> dict[str, ConsumerGroupTopicPartitions]:
        """The answers about all of these; those that a coordinator is not ready for are asked again."""
        found: dict[str, ConsumerGroupTopicPartitions] = {}
        left = [*names]

        def look() -> bool:
            for name, future in ask(left).items():
                try:
                    answer = future.result(SECONDS)
                except KafkaException as error:
                    _be_retriable(error.args[0], name)
                    continue
                errors = [of.error for of in (answer.topic_partitions or () if answer else ()) if of.error is not None]
                for error in errors:
                    _be_retriable(error, name)
                if not errors:
                    found[name] = answer
            left[:] = [name for name in left if name not in found]
            return not left

        until(what, look, saw=lambda: left[:5])
        return found


def _committed(group: str, number: int) -> ConsumerGroupTopicPartitions:
    offsets = [TopicPartition(TOPIC, partition, first_offset(group, partition) + number) for partition in range(PARTITIONS)]
    return ConsumerGroupTopicPartitions(group, offsets)


def _be_retriable(error: KafkaError, group: str) -> None:
    assert error.code() in _RETRIABLE, (group, error)
