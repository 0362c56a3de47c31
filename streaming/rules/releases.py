"""What a broker's release decides of its limits; releases are told apart by the highest metadata.version that its registration supports."""

from streaming.rules.limits import Limits

KAFKA_3_4 = 8
"""The first metadata.version that a broker of Kafka 3.4 supports (`MetadataVersion.IBP_3_4_IV0`)."""


def producer_expiration(limits: Limits, metadata_version: int) -> int:
    """After how many milliseconds of silence a broker lets go of a producer: up to Kafka 3.3 as of a transactional id (KIP-854).

    A release that is not known counts as a later one.
    """
    return limits.transactional_id_expiration_ms if 0 <= metadata_version < KAFKA_3_4 else limits.producer_expiration_ms
