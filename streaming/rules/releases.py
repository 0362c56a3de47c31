"""The limits that depend on a broker's release, which is known by the highest metadata.version that its registration supports."""

from streaming.rules.limits import Limits

KAFKA_3_4 = 8
"""The first metadata.version that a broker of Kafka 3.4 supports (`MetadataVersion.IBP_3_4_IV0`)."""


def producer_expiration(limits: Limits, metadata_version: int) -> int:
    """After how many milliseconds of silence a broker forgets a producer. Up to Kafka 3.3 it is the time for a transactional id (KIP-854).

    A release that is not known counts as a later one.
    """
    return limits.transactional_id_expiration_ms if 0 <= metadata_version < KAFKA_3_4 else limits.producer_expiration_ms
