"""Widths of columns, whatever they would like to have."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.pages.listings.text_table import GAP, fitted

columns = st.lists(st.tuples(st.integers(1, 200), st.sampled_from([0, 0, 6, 16])), max_size=12)


@given(columns, st.integers(1, 250))
def test_what_is_shown_fits_and_the_important_columns_come_first(wanted: list[tuple[int, int]], width: int) -> None:
    natural, least = [each for each, _ in wanted], [each for _, each in wanted]
    widths = fitted(natural, least, width)
    assert len(widths) >= min(1, len(wanted))
    assert sum(widths) + GAP * (len(widths) - 1) <= width or not widths
    assert all(0 < width <= most for width, most in zip(widths, natural, strict=False))
    whole = [width for width, few in zip(widths[1:], least[1:], strict=False) if not few]
    assert whole == [most for most, few in list(zip(natural, least, strict=True))[1 : len(widths)] if not few]


@given(columns, st.integers(1, 250))
def test_a_wider_terminal_shows_at_least_as_many_columns_unless_a_name_is_whole_there(wanted: list[tuple[int, int]], width: int) -> None:
    natural, least = [each for each, _ in wanted], [0 for _ in wanted]
    assert len(fitted(natural, least, width + 1)) >= len(fitted(natural, least, width))
