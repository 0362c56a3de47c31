"""The batches at the start of some bytes, all at once, and the metadata that those of a snapshot hold."""

from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.records import RecordBatch, read_batch


def read_batches(data: memoryview) -> tuple[tuple[RecordBatch, ...], int]:
    """The complete batches, and their size in bytes."""
    batches = []
    position = 0
    while (batch := read_batch(data, position)) is not None:
        batches.append(batch)
        position += batch.size
    return tuple(batches), position


def image_of_snapshot(data: bytes | memoryview, end_offset: int) -> ClusterImage:
    """The image of the bytes of a snapshot."""
    batches, consumed = read_batches(memoryview(data))
    return ClusterImage.from_batches(batches if consumed == len(data) else [], end_offset)
