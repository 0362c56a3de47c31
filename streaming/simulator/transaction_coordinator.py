"""The transaction coordinator: its log ``__transaction_state`` and the markers (`TransactionCoordinator`, transaction.version 2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from streaming.simulator.batch_writer import Batch, end_transaction
from streaming.simulator.coordinator_records import IdState, StoredTransaction, partition_for, transaction_record
from streaming.simulator.log import PartitionLog, clean

_LAST_EPOCH = 32_766


class Coordinator:
    """Writes every step of every transaction.

    Args:
        logs: the partitions of ``__transaction_state``.
        partitions: all logs of the broker by topic and partition: where markers go.
        new_producer_id: allocates a producer id at a time.
    """

    def __init__(
        self,
        logs: Sequence[PartitionLog],
        partitions: Mapping[tuple[str, int], PartitionLog],
        new_producer_id: Callable[[int], int],
    ) -> None:
        self._logs = logs
        self._partitions = partitions
        self._new_producer_id = new_producer_id
        self._latest: dict[str, int] = {}

    def init(self, transactional_id: str, timeout_ms: int, now: int, *, client_version: int = 2) -> StoredTransaction:
        """A producer starts with a transactional id that nobody used before."""
        producer_id = self._new_producer_id(now)
        return self._write(
            StoredTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                epoch=0,
                timeout_ms=timeout_ms,
                state=IdState.EMPTY,
                updated=now,
                previous_producer_id=producer_id,
                client_version=client_version,
            )
        )

    def add(self, transaction: StoredTransaction, topic: str, partition: int, now: int) -> StoredTransaction:
        """Before the first batch for a partition; the first partition opens the transaction."""
        if transaction.state is not IdState.ONGOING:
            transaction = replace(transaction, state=IdState.ONGOING, partitions=(), started=now)
        elif (topic, partition) in transaction.partitions:
            return transaction
        return self._write(replace(transaction, partitions=(*transaction.partitions, (topic, partition)), updated=now))

    def end(self, transaction: StoredTransaction, *, committed: bool, now: int) -> StoredTransaction:
        """Decide, write the markers, and say that it is done. The producer goes on with the next epoch; before version 2 with the same."""
        prepared, done = (IdState.PREPARE_COMMIT, IdState.COMPLETE_COMMIT) if committed else (IdState.PREPARE_ABORT, IdState.COMPLETE_ABORT)
        epoch = transaction.epoch + (transaction.client_version >= 2)
        transaction = self._write(replace(transaction, state=prepared, epoch=epoch, updated=now))
        marker = end_transaction(
            committed=committed, producer_id=transaction.producer_id, producer_epoch=transaction.epoch, coordinator_epoch=0, timestamp=now
        )
        for written_to in transaction.partitions:
            self._partitions[written_to].append(marker)
        complete = self._write(replace(transaction, state=done, partitions=()))
        return self._rotated(complete, now) if complete.epoch >= _LAST_EPOCH else complete

    def _rotated(self, transaction: StoredTransaction, now: int) -> StoredTransaction:
        # The client asks for a new producer id when its epochs are used up.
        new = self._new_producer_id(now)
        previous = transaction.producer_id
        return self._write(replace(transaction, state=IdState.EMPTY, producer_id=new, previous_producer_id=previous, epoch=0, started=-1))

    def _write(self, transaction: StoredTransaction) -> StoredTransaction:
        log = self._log(transaction.transactional_id)
        self._latest[transaction.transactional_id] = log.append(Batch(records=(transaction_record(transaction),)))
        return transaction

    def compact(self, now: int) -> None:
        """Let the cleaner drop all but the latest record of every transactional id."""
        for log in self._logs:
            clean(log, {offset for name, offset in self._latest.items() if self._log(name) is log}, now)

    def _log(self, transactional_id: str) -> PartitionLog:
        return self._logs[partition_for(transactional_id, len(self._logs))]
