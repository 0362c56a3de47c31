"""Any message of a kind, by the declared types of its fields; and bytes that are almost one."""

import dataclasses
import typing

from hypothesis import strategies as st

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Text, Whole

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_VALUES: dict[object, st.SearchStrategy[object]] = {
    int: st.integers(-1, 1 << 53) | st.sampled_from([-(1 << 63), (1 << 63) - 1]),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    str: NAMES,
}

Json = None | bool | int | float | str | list[typing.Any] | dict[str, typing.Any]
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
"""Any value, also numbers that are none, integers of any size, and halves of surrogate pairs."""


def built(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Any message of a kind."""
    return st.builds(kind, **{name: _any(hint) for name, hint in hints(kind).items()})


def hints(kind: type[Message]) -> dict[str, typing.Any]:
    """The types of its fields."""
    found = typing.get_type_hints(kind, include_extras=True)
    return {each.name: found[each.name] for each in dataclasses.fields(kind)}


def _any(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    if hint in _VALUES:
        return _VALUES[hint]
    if isinstance(hint, type):
        return built(hint)
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Annotated:
            limits = next((each for each in arguments[1:] if isinstance(each, Text | Whole)), None)
            return _any(arguments[0]) if limits is None else _limited(limits)
        case kind if kind is list:
            return st.lists(_any(arguments[0]), max_size=2)
        case kind if kind is dict:
            return st.dictionaries(_any(arguments[0]), _any(arguments[1]), max_size=2)
    return st.one_of(*(st.none() if each is type(None) else _any(each) for each in arguments))


def _limited(limits: Text | Whole) -> st.SearchStrategy[object]:
    if isinstance(limits, Whole):
        return st.integers(limits.least, limits.most)
    if limits.form:
        return st.from_regex(limits.form, fullmatch=True).filter(lambda text: not any("\ud800" <= each <= "\udfff" for each in text))
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=limits.least, max_size=20)
