"""Messages between agent and client are small JSON objects, each a frozen value: what all of them share."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, get_type_hints

from streaming.errors import AgentError, quoted
from streaming.protocol.json_values import MOST_VALUES, Reader, load, reader_of
from streaming.protocol.versions import UNNAMED


@dataclass(frozen=True, slots=True)
class Message:
    """A value that is sent as JSON. The types of its fields are all that a message of its kind may hold (`json_values`)."""

    DEFAULTS: ClassVar[Mapping[str, object]] = {}
    """The values of fields that an earlier version does not send, where they differ from the field's default."""

    MOST_VALUES: ClassVar[int] = MOST_VALUES
    """The most values of such a message, lists and objects in it included."""

    def encode(self) -> bytes:
        """Encode the message as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes, most: int | None = None) -> Self:
        """Decode the message from JSON. Unknown fields are ignored, because the other side may be newer.

        Args:
            most: values, if fewer than usual are taken.

        Raises:
            AgentError: it is not such a message.
        """
        kind: Any = cls
        try:
            found: Self = _reader(kind)(load(data, cls.MOST_VALUES if most is None else most))
        except ValueError as error:
            raise AgentError(f"not a message of kind {cls.__name__}: {quoted(data)} ({error})", "protocol") from error
        return found


UNNAMED_SENDER: Mapping[str, object] = {"protocol": UNNAMED}
"""The defaults of a message from a version that does not send its protocol's number."""


@cache
def _reader(kind: Any) -> Reader:
    """Makes a message of this kind of an object of JSON."""
    hints = get_type_hints(kind, include_extras=True)
    readers = {each.name: reader_of(hints[each.name], _reader) for each in fields(kind)}
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    needed = [name for name in needed if name not in kind.DEFAULTS]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{quoted(value)} is no object")
        missing = [name for name in needed if name not in value]
        if missing:
            raise ValueError(f"{missing[0]} of {kind.__name__} is missing")
        found = dict(kind.DEFAULTS)
        for name in value.keys() & readers.keys():
            try:
                found[name] = readers[name](value[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return kind(**found)

    return read
