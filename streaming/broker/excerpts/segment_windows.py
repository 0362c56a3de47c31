"""Opens a listed segment for reading its batches window by window, over damage too."""

from streaming.broker.disk.kafka_files import FileType, KafkaFile
from streaming.broker.disk.segment_files import Segment
from streaming.broker.excerpts.finding import Report
from streaming.broker.excerpts.segment_walk import SegmentReader
from streaming.kafka.scan.walk import Bytes


def segment_reader(segment: Segment, buffer: Bytes, report: Report, *, growing: bool, crcs: bool) -> SegmentReader:
    """A reader whose windows have all bytes of their batches. Close it.

    Args:
        report: takes what is damaged.
        growing: it is the active segment.
        crcs: find the batches with wrong CRCs.

    Raises:
        OSError: it is gone or cannot be read.
    """
    file = KafkaFile(segment.path, FileType.SEGMENT, None, segment.base_offset, live=not segment.swap, active=growing)
    return SegmentReader(file, report, buffer, whole=True, crcs=crcs, growing=growing)
