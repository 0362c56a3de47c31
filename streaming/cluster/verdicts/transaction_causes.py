"""Which open transactions are problems, and what waits for them: by the partitions that they hold and by their producers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from streaming.cluster.verdicts.cases import transaction_verdict
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.kinds import ProblemKind
from streaming.cluster.verdicts.links import NO_PRODUCER, TopicPartition
from streaming.cluster.view.open_list import Late


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCauses:
    """``judged``: the listed transactions that are problems. ``holders``: by partition the producer of the one that holds it back."""

    judged: Sequence[tuple[Late, ProblemKind]] = ()
    holders: dict[TopicPartition, int] = field(default_factory=dict)
    producers: frozenset[int] = frozenset()

    def of_held(self, partition: TopicPartition) -> int:
        """Whose transaction holds a partition back, `NO_PRODUCER` if it is no problem."""
        return self.holders.get(partition, NO_PRODUCER)

    def of_pending(self, producers: Sequence[int]) -> int:
        """The first of some producers whose transaction is a problem."""
        return next((each for each in producers if each in self.producers), NO_PRODUCER)


def transaction_causes(circumstances: Circumstances) -> TransactionCauses:
    """Those of a moment."""
    logs = circumstances.view.logs
    verdicts = ((late, transaction_verdict(circumstances, late).kind) for late in logs.late)
    judged = [(late, kind) for late, kind in verdicts if kind is not None]
    holders = {
        (circumstances.topics[int(logs["topic"][late.log])], int(logs["partition"][late.log])): late.producer_id
        for late, _ in judged
        if logs.held_by(late) >= 0
    }
    return TransactionCauses(judged=judged, holders=holders, producers=frozenset(late.producer_id for late, _ in judged))
