"""Reads tables of Arrow that another process has sent: their buffers are checked, because Arrow, which follows them, does not.

A text of Arrow is found by a place in a buffer. A place behind the end of the buffer ends the process that reads it. What is read takes no
more memory than what was sent: no buffer is compressed, and none is the buffer of two columns.
"""

import struct
import zlib

import pyarrow as pa

_HEADER_TYPE, _HEADER = 1, 2  # of a message
_DICTIONARY, _BATCH = 2, 3  # types of headers
_DATA = 1  # of a dictionary: the batch with its values
_COMPRESSION = 3  # of a batch
_EARLY_KEY = b"ARROW:experimental_compression"  # in the metadata of the message, before there was a field for it

NOT_ARROW = (OSError, EOFError, UnicodeDecodeError)
"""What Arrow raises beside its own errors for bytes that it cannot read. The last is for the name of a column."""


def read_stream(data: bytes | pa.Buffer) -> pa.Table:
    """The table of a stream.

    Raises:
        pa.ArrowException: it is none, or is damaged.
    """
    try:
        for message in pa.ipc.MessageReader.open_stream(data):
            refuse_compressed(message)
        table = pa.ipc.open_stream(data).read_all()
        check_buffers(table, len(data))
    except NOT_ARROW as error:
        raise pa.ArrowInvalid(str(error)) from error
    return table


def refuse_compressed(message: pa.ipc.Message) -> None:
    """Refuse a message whose body is to be unpacked: a few bytes unpack to any size.

    Arrow's readers unpack as they read and take no bound, and segtail compresses nothing in this way. A message's head is a FlatBuffer: a
    table is found by an offset, and its fields by a list of places that the table points back to.

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


def check_buffers(rows: pa.Table | pa.RecordBatch, size: int) -> None:
    """Check rows that were read from ``size`` bytes.

    Raises:
        pa.ArrowInvalid: they lead outside of their buffers, or take more bytes than there are: then columns share buffers.
    """
    rows.validate(full=True)
    if rows.nbytes > size:
        raise pa.ArrowInvalid(f"its columns are {rows.nbytes} bytes, out of {size}")


def cast_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema by their names. Integers may have another width; nothing else is converted, as it may take any memory.

    Raises:
        KeyError: a column is missing.
        pa.ArrowException: one is of another type.
    """
    found = table.select(schema.names)
    for name, have, want in zip(schema.names, found.schema.types, schema.types, strict=True):
        if have != want and not (pa.types.is_integer(have) and pa.types.is_integer(want)):
            raise pa.ArrowTypeError(f"column {name} is {have} and not {want}")
    return found.cast(schema)


def inflate(packed: bytes, limit: int) -> bytes:
    """What was packed.

    Raises:
        ValueError: it is no whole stream of zlib, or holds more than ``limit`` bytes.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(packed, limit)
        if not stream.eof and (stream.unconsumed_tail or stream.decompress(b"", 1)):
            raise ValueError(f"it holds more than {limit} bytes")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError("it is cut short")
    return data
