"""Reads of a message of Arrow whether its buffers are compressed, before anybody unpacks them: a few bytes unpack to any size.

Arrow's readers unpack as they read and take no bound, and nobody here compresses in this way. A message's head is a FlatBuffer: a table is
found by an offset, and its fields by a list of places that the table points back to.
"""

import struct

import pyarrow as pa

_HEADER_TYPE, _HEADER = 1, 2  # of a message
_DICTIONARY, _BATCH = 2, 3  # types of headers
_DATA = 1  # of a dictionary: the batch with its values
_COMPRESSION = 3  # of a batch
_EARLY_KEY = b"ARROW:experimental_compression"  # in the metadata of the message, before there was a field for it


def refuse_compressed(message: pa.ipc.Message) -> None:
    """Refuse a message whose body is to be unpacked.

    Raises:
        pa.ArrowInvalid: it is compressed, or its head is damaged.
    """
    head = message.metadata.to_pybytes()
    try:
        compressed = _is_compressed(head)
    except (struct.error, IndexError) as error:
        raise pa.ArrowInvalid("the head of a message of Arrow is damaged") from error
    if compressed or _EARLY_KEY in head:
        raise pa.ArrowInvalid("its buffers are compressed, which no version of segtail does")


def _is_compressed(head: bytes) -> bool:
    message = _target(head, 0)
    kind_at, header_at = _field(head, message, _HEADER_TYPE), _field(head, message, _HEADER)
    kind = head[kind_at] if kind_at else 0
    if kind not in (_DICTIONARY, _BATCH) or not header_at:
        return False
    batch = _target(head, header_at)
    if kind == _DICTIONARY:
        data_at = _field(head, batch, _DATA)
        if not data_at:
            return False
        batch = _target(head, data_at)
    return _field(head, batch, _COMPRESSION) != 0


def _target(head: bytes, at: int) -> int:
    """Where the offset at a position leads."""
    return at + int(struct.unpack_from("<I", head, at)[0])


def _field(head: bytes, table: int, number: int) -> int:
    """The position of a table's field, 0 if the table has none."""
    places = table - int(struct.unpack_from("<i", head, table)[0])
    if places < 0:
        raise IndexError(places)
    at, end = places + 4 + 2 * number, places + int(struct.unpack_from("<H", head, places)[0])
    place = int(struct.unpack_from("<H", head, at)[0]) if at < end else 0
    return table + place if place else 0
