"""Small integers for keys."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.value_matrix import Ids


def test_a_key_keeps_its_number_until_every_use_is_given_back() -> None:
    ids: Ids[str] = Ids()
    number = ids.take("orders")
    assert ids.take("orders") == number
    assert ids.release("orders") is None
    assert ids.find("orders") == number
    assert ids.release("orders") == number
    assert ids.find("orders") is None


def test_a_number_given_back_is_used_again() -> None:
    ids: Ids[str] = Ids()
    number = ids.take("old")
    ids.release("old")
    assert ids.take("new") == number
    assert len(ids) == 1


def test_a_key_without_a_number_cannot_be_given_back() -> None:
    with pytest.raises(KeyError):
        Ids[str]().release("orders")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5))))
def test_keys_in_use_have_different_numbers_below_the_length(steps: list[tuple[bool, int]]) -> None:
    ids: Ids[int] = Ids()
    uses: Counter[int] = Counter()
    for take, key in steps:
        if take:
            ids.take(key)
            uses[key] += 1
        elif uses[key]:
            ids.release(key)
            uses[key] -= 1
    numbers = [ids.find(key) for key, count in uses.items() if count]
    assert len(set(numbers)) == len(numbers)
    assert all(number is not None and 0 <= number < len(ids) for number in numbers)
    assert all(ids.find(key) is None for key, count in uses.items() if not count)
