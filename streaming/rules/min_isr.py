"""How many replicas have to be in sync, and what a leader does while fewer are (`Partition.effectiveMinIsr`, `Partition.isUnderMinIsr`).

Since Kafka 3.7 a partition with fewer replicas than ``min.insync.replicas`` takes their number for it, and a leader moves its high
watermark on only while enough are in sync, whatever producers ask for. Before that neither was so. Which release a leader runs is told by
the highest metadata.version that its registration supports: the level that counts for the cluster lags behind the binaries.
"""

import numpy as np
from numpy.typing import NDArray

from streaming.rules.limits import Limits

Longs = NDArray[np.int64]

KAFKA_3_7 = 15
"""The first metadata.version that a broker of Kafka 3.7 supports (`MetadataVersion.IBP_3_7_IV0`)."""


def effective_min_isr(min_insync_replicas: Longs, replicas: Longs, metadata_version: Longs) -> Longs:
    """How many replicas of each partition have to be in sync before a producer with acks=all may write.

    Args:
        min_insync_replicas: as it is configured.
        replicas: how many there are, those that are being added too.
        metadata_version: the highest that the leader supports, -1 where it names none or that is not known.
    """
    effective: Longs = np.where(metadata_version < KAFKA_3_7, min_insync_replicas, np.minimum(min_insync_replicas, replicas))
    return effective


def may_stand(limits: Limits, isr: int, replicas: int, metadata_version: int) -> bool:
    """Whether the leader may not move its high watermark on, although all that are in sync hold more.

    True also where the release of the leader, or ``min.insync.replicas``, is not known: a high watermark is never told later than it is.
    """
    if isr >= replicas or 0 <= metadata_version < KAFKA_3_7:
        return False
    return not limits.min_insync_known or isr < limits.min_insync_replicas
