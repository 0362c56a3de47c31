"""Messages between agent and client are small JSON objects, each a frozen value: what all of them share."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NoReturn, Self

from streaming.errors import AgentError
from streaming.protocol.versions import UNNAMED


@dataclass(frozen=True, slots=True)
class Message:
    """A value that is sent as JSON."""

    HOLDS: ClassVar[dict[str, type["Message"]]] = {}
    """The types of values that are messages themselves, or of the elements of its lists."""

    DEFAULTS: ClassVar[Mapping[str, object]] = {}
    """The values of fields that an earlier version does not send, where they differ from the field's default."""

    def encode(self) -> bytes:
        """Encode the message as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode the message from JSON. Unknown fields are ignored, because the other side may be newer.

        Raises:
            AgentError: it is not such a message.
        """
        try:
            return cls._of(json.loads(data, parse_constant=_refuse))
        except (ValueError, TypeError, AttributeError) as error:
            raise AgentError(f"not a message of kind {cls.__name__}: {data[:200]!r} ({error})") from error

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        values: dict[str, Any] = {**cls.DEFAULTS, **{name: value for name, value in fields.items() if name in cls.__dataclass_fields__}}
        held = {name: kind._held(values[name]) for name, kind in cls.HOLDS.items() if name in values}
        return cls(**values | held)

    @classmethod
    def _held(cls, value: Any) -> Any:
        """A list of such messages, one of them, or None."""
        if isinstance(value, list):
            return [cls._of(each) for each in value]
        return None if value is None else cls._of(value)


def _refuse(constant: str) -> NoReturn:
    """NaN and the infinities are in no JSON, but Python's reader takes them: nothing that compares numbers is right with them."""
    raise ValueError(f"{constant} is no number")


UNNAMED_SENDER: Mapping[str, object] = {"protocol": UNNAMED}
"""The defaults of a message from a version that does not send its protocol's number."""
