"""Kafka's protocol by hand: the requests that make transactions of the second protocol version, hanging ones, and ask what is open.

librdkafka ends transactions by the first version, in which a marker carries the epoch of its data, and refuses to write what nobody will
end. Formats: the request and response schemas of Kafka's protocol (`ProduceRequest.json` and its like), flexible versions throughout.
"""

import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from streaming.simulator.batch_writer import Batch, Record, encode
from tests.limits import SECONDS

_PRODUCE, _LIST_OFFSETS, _INIT_PRODUCER_ID, _END_TXN, _DESCRIBE_PRODUCERS = 0, 2, 22, 26, 61
_OFFSET_FETCH, _TXN_OFFSET_COMMIT, _REASSIGN = 9, 28, 45
UNSTABLE_OFFSET_COMMIT = 88
"""Kafka's error: an offset of that partition is committed in a transaction that is open."""

_IMPLICIT = 12
"""The first version of a produce request by which a broker adds the partition to the transaction itself."""

_LATEST = -1
_T = TypeVar("_T")


class RefusedError(Exception):
    """The broker answered with an error; ``code`` is Kafka's."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ProducerId:
    """Who writes."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True, order=True)
class OpenProducer:
    """A producer with an open transaction, as DescribeProducers tells it; the timestamp in Unix milliseconds."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_timestamp: int


class Wire:
    """A connection to one broker. An answer is waited for before the next request."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def init_producer(self, transactional_id: str, timeout_ms: int = 600_000) -> ProducerId:
        """A producer id for a transactional id; a transaction of its that is open is aborted."""
        answer = self._ask(_INIT_PRODUCER_ID, 4, _text(transactional_id) + struct.pack(">iqh", timeout_ms, -1, -1) + _TAGS)
        answer.skip(4)
        _check(answer.int16())
        return ProducerId(answer.int64(), answer.int16())

    def end_transaction(self, transactional_id: str, producer: ProducerId, *, commit: bool) -> ProducerId:
        """Ends a transaction by the second version: the producer goes on with the id and epoch that come back, from sequence 0."""
        answer = self._ask(_END_TXN, 5, _text(transactional_id) + struct.pack(">qhb", producer.id, producer.epoch, commit) + _TAGS)
        answer.skip(4)
        _check(answer.int16())
        return ProducerId(answer.int64(), answer.int16())

    def produce(
        self,
        transactional_id: str,
        producer: ProducerId,
        topic: str,
        partition: int,
        sequence: int,
        records: int,
        *,
        now_ms: int,
        implicit: bool = True,
    ) -> int:
        """Writes one transactional batch; returns its base offset.

        Args:
            implicit: the broker adds the partition to the transaction. Else it believes that this was done, if it does not verify it.
        """
        batch = encode(
            Batch(
                records=tuple(Record(b"key", b"value %d" % number, now_ms) for number in range(records)),
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                transactional=True,
            ),
            0,
        )
        data = _array([struct.pack(">i", partition) + _varint(len(batch) + 1) + batch + _TAGS])
        body = _text(transactional_id) + struct.pack(">hi", -1, 30_000) + _array([_text(topic) + data + _TAGS]) + _TAGS
        answer = self._ask(_PRODUCE, _IMPLICIT if implicit else _IMPLICIT - 1, body)
        answer.varint()  # one topic
        answer.text()
        answer.varint()  # one partition
        answer.skip(4)
        _check(answer.int16())
        return answer.int64()

    def commit_in_transaction(self, transactional_id: str, producer: ProducerId, group: str, topic: str, partition: int) -> None:
        """Commits an offset of a group in a transaction that the broker believes was reported it, if it does not verify that."""
        commit = struct.pack(">iqi", partition, 1, -1) + _text("") + _TAGS
        head = _text(transactional_id) + _text(group) + struct.pack(">qhi", producer.id, producer.epoch, -1) + _text("") + _varint(0)
        answer = self._ask(_TXN_OFFSET_COMMIT, 3, head + _array([_text(topic) + _array([commit]) + _TAGS]) + _TAGS)
        answer.skip(4)
        for code in _of_topic(answer, answer.committed):
            _check(code)

    def stable_offset_error(self, group: str, topic: str, partition: int) -> int:
        """The error of a fetch of one committed offset that has to be stable, 0 for none."""
        asked = _array([_text(topic) + _array([struct.pack(">i", partition)]) + _TAGS])
        answer = self._ask(_OFFSET_FETCH, 7, _text(group) + asked + b"\1" + _TAGS)
        answer.skip(4)
        (code,) = _of_topic(answer, answer.fetched)
        return code

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Begin to move a partition. Unlike Kafka's tool this does not ask first whether all brokers are there."""
        moved = _array([struct.pack(">i", partition) + _array([struct.pack(">i", each) for each in replicas]) + _TAGS])
        answer = self._ask(_REASSIGN, 0, struct.pack(">i", 30_000) + _array([_text(topic) + moved + _TAGS]) + _TAGS)
        answer.skip(4)
        _check(answer.int16())
        answer.text()

        def error() -> int:
            answer.int32()
            code = answer.int16()
            answer.text()
            answer.tags()
            return code

        for code in _of_topic(answer, error):
            _check(code)

    def end_offsets(self, topic: str, partitions: Iterable[int], *, committed: bool) -> dict[int, int]:
        """Where readers of everything, or of committed data alone, find the end: high watermark, last stable offset."""
        asked = _array([struct.pack(">iiq", each, -1, _LATEST) + _TAGS for each in partitions])
        answer = self._ask(_LIST_OFFSETS, 7, struct.pack(">ib", -1, committed) + _array([_text(topic) + asked + _TAGS]) + _TAGS)
        answer.skip(4)

        def partition() -> tuple[int, int]:
            index = answer.int32()
            _check(answer.int16())
            answer.skip(8)
            offset = answer.int64()
            answer.skip(4)
            answer.tags()
            return index, offset

        return dict(_of_topic(answer, partition))

    def open_producers(self, topic: str, partitions: Sequence[int]) -> dict[int, list[OpenProducer]]:
        """The producers with an open transaction in each partition that this broker leads."""
        asked = _array([_text(topic) + _array([struct.pack(">i", each) for each in partitions]) + _TAGS])
        answer = self._ask(_DESCRIBE_PRODUCERS, 0, asked + _TAGS)
        answer.skip(4)

        def producer() -> OpenProducer:
            producer_id, epoch, _, last_ms = answer.int64(), answer.int32(), answer.int32(), answer.int64()
            answer.skip(4)
            first_offset = answer.int64()
            answer.tags()
            return OpenProducer(producer_id, epoch, first_offset, last_ms)

        def partition() -> tuple[int, list[OpenProducer]]:
            index = answer.int32()
            _check(answer.int16())
            answer.text()
            found = answer.array(producer)
            answer.tags()
            return index, sorted(each for each in found if each.first_offset >= 0)

        return dict(_of_topic(answer, partition))

    def _ask(self, key: int, version: int, body: bytes) -> "_Answer":
        self._sent += 1
        request = struct.pack(">hhih", key, version, self._sent, -1) + _TAGS + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._read(4))
        answer = _Answer(self._read(size))
        assert answer.int32() == self._sent
        answer.tags()
        return answer

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError("the broker has closed the connection")
            data += part
        return bytes(data)


class _Answer:
    """What a broker answered, read from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def committed(self) -> int:
        """The error of one partition of a commit."""
        self.int32()
        return self._error()

    def fetched(self) -> int:
        """The error of one partition of a fetch of offsets."""
        self.skip(16)
        self.text()
        return self._error()

    def _error(self) -> int:
        code = self.int16()
        self.tags()
        return code

    def skip(self, size: int) -> None:
        self._at += size

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self) -> str | None:
        size = self.varint() - 1
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def array(self, item: Callable[[], _T]) -> list[_T]:
        return [item() for _ in range(self.varint() - 1)]

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)


_TAGS = b"\0"


def _of_topic(answer: _Answer, partition: Callable[[], _T]) -> list[_T]:
    """The partitions of the one topic that was asked about."""
    assert answer.varint() == 2
    answer.text()
    return answer.array(partition)


def _check(code: int) -> None:
    if code:
        raise RefusedError(code)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: str) -> bytes:
    data = value.encode()
    return _varint(len(data) + 1) + data


def _array(items: Sequence[bytes]) -> bytes:
    return _varint(len(items) + 1) + b"".join(items)
