"""Reads tables of Arrow that another process has sent: their buffers are checked, because whoever follows them does not.

A text of Arrow is found by a place in a buffer. A place behind the end of the buffer ends the process that reads it.
"""

import pyarrow as pa


def read_stream(data: bytes | pa.Buffer) -> pa.Table:
    """The table of a stream.

    Raises:
        pa.ArrowException: it is none, or is damaged.
    """
    try:
        table = pa.ipc.open_stream(data).read_all()
    except (OSError, EOFError) as error:  # Arrow has no error of its own for some of what it cannot read
        raise pa.ArrowInvalid(str(error)) from error
    table.validate(full=True)
    return table


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
