"""Whose a transaction probably is, by the form of its transactional id: what has to be known before it is ended.

Nothing else on a disk says it, and anybody may choose an id of such a form: whatever is said of it says "probably" or "perhaps".

Forms: Flink's `KafkaSink` (flink-connector-kafka 1.14 to 5.0, `TransactionalIdFactory`: prefix, subtask, checkpoint or number in a pool),
before that `FlinkKafkaProducer` (`TransactionalIdsGenerator`: task, uid of the operator as 32 hex digits, number); Kafka Streams
(`StreamsProducer`: application, process, thread; before exactly_once_v2 a task such as 0_1); Kafka Connect
(`DistributedConfig.transactionalProducerId`; of a task group, connector, number); Spring (`DefaultKafkaProducerFactory`: prefix, number).
"""

import re
from dataclasses import dataclass

from streaming.common.short_names import PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOwner:
    """``name``: what it ``likely`` is. ``known``: what is known of its kind, a clause. ``loses``: its end loses what a restart commits."""

    name: str
    known: str
    likely: str = "probably"
    loses: bool = False


_FLINK = TransactionOwner(
    name="a sink of Flink",
    known="what its last checkpoint has of the transaction is lost if the transaction is ended: restore the job from that checkpoint or "
    "savepoint, which commits it, or commit it by the producer id and epoch that the checkpoint has; never force its end",
    loses=True,
)
_STREAMS = TransactionOwner(
    name="an application of Kafka Streams",
    known="it commits what it has read in the same transaction, so it makes again what its end discards: start it again",
)
_CONNECT = TransactionOwner(
    name="Kafka Connect",
    known="a source task commits its source's offsets in the same transaction, so it reads again what its end discards: restart it",
)
_NUMBERED = TransactionOwner(
    name="a source task of Kafka Connect, or a producer of Spring",
    likely="perhaps",
    known="a source task reads again what its end discards, and of what Spring's application writes only that can tell",
)
_FORMS = (
    (r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-StreamThread)?-\d+", _STREAMS),
    (r".*-\d+_\d+", _STREAMS),
    (r".*-[0-9a-f]{32}-\d+", _FLINK),
    (r"connect-cluster-.+", _CONNECT),
    (r".*-(0|[1-9]\d*)-(0|[1-9]\d*)", _FLINK),
    (r".*-\d+", _NUMBERED),
)


def owner_of(transactional_id: str) -> TransactionOwner | None:
    """Whose a transaction probably is; None if the form of its id does not show it, as where ids leave their host as hashes."""
    if transactional_id.startswith(PREFIX):
        return None
    return next((owner for form, owner in _FORMS if re.fullmatch(form, transactional_id, re.ASCII | re.DOTALL)), None)
