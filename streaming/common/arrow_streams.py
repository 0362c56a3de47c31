"""Reads tables of Arrow that another process has sent: their buffers are checked, because whoever follows them does not.

A text of Arrow is found by a place in a buffer. A place behind the end of the buffer ends the process that reads it. What is read takes no
more memory than what was sent: no buffer is compressed, and none is the buffer of two columns.
"""

import pyarrow as pa

from streaming.common.arrow_messages import refuse_compressed

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
