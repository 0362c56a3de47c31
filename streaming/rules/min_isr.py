"""How many replicas have to be in sync, and how a leader behaves while fewer are (`Partition.effectiveMinIsr`, `Partition.isUnderMinIsr`).

Since Kafka 3.7, a partition with fewer replicas than ``min.insync.replicas`` uses their number instead. Also, a leader advances its high
watermark only while enough replicas are in sync, whatever producers request. Before 3.7, neither was the case. A leader's release is known
by the highest metadata.version that its registration supports, because the finalized level of the cluster lags behind the binaries.
"""

import numpy as np

from streaming.common.arrays import Longs
from streaming.rules.limits import Limits

KAFKA_3_7 = 15
"""The first metadata.version that a broker of Kafka 3.7 supports (`MetadataVersion.IBP_3_7_IV0`)."""


def effective_min_isr(min_insync_replicas: Longs, replicas: Longs, metadata_version: Longs) -> Longs:
    """How many replicas of each partition have to be in sync before a producer with acks=all may write.

    Args:
        min_insync_replicas: the configured value.
        replicas: how many there are, including those that are being added.
        metadata_version: the highest that the leader supports, -1 if it names none or that is not known.
    """
    effective: Longs = np.where(metadata_version < KAFKA_3_7, min_insync_replicas, np.minimum(min_insync_replicas, replicas))
    return effective


def may_stand(limits: Limits, isr: int, replicas: int, metadata_version: int) -> bool:
    """Whether the leader may be unable to advance its high watermark, although all in-sync replicas hold more.

    True also if the leader's release or ``min.insync.replicas`` is not known, so that a high watermark is never reported higher than it is.
    """
    if isr >= replicas or 0 <= metadata_version < KAFKA_3_7:
        return False
    return not limits.min_insync_known or isr < limits.min_insync_replicas
