"""A table of cases names every row that is wrong."""

import inspect

import pytest

from tests.tables import each_row


def test_every_row_is_tried_and_each_that_is_wrong_is_named_with_what_is_wrong(tmp_path: object) -> None:
    tried = []

    @each_row("number, word", [(1, "a"), (2, "b"), pytest.param(3, "c", id="the third"), (4, "d")])
    def table(number: int, word: str, fixture: object) -> None:
        tried.append(word)
        assert number != 2
        with pytest.raises(ValueError, match="d"):
            raise (OSError if number == 4 else ValueError)("d")
        if number == 3:
            pytest.fail("no third one")

    with pytest.raises(ExceptionGroup, match=r"3 of 4 rows are wrong: \(2, 'b'\); the third; \(4, 'd'\)") as wrong:
        table(fixture=tmp_path)
    assert tried == ["a", "b", "c", "d"]
    assert [type(each) for each in wrong.value.exceptions] == [AssertionError, AssertionError, OSError]


def test_fixtures_are_those_that_no_column_is_named_after() -> None:
    @each_row("n", [1, 2])
    def table(n: int, tmp_path: object) -> None: ...

    assert list(inspect.signature(table).parameters) == ["tmp_path"]


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="without rows"):
        each_row("n", [])


def test_what_a_row_lacks_skips_the_test_and_hides_no_row_that_is_wrong() -> None:
    @each_row("number", [1, 2])
    def lacks(number: int) -> None:
        pytest.skip("nothing is installed")

    @each_row("number", [1, 2])
    def is_wrong(number: int) -> None:
        assert number == 1
        pytest.skip("nothing is installed")

    with pytest.raises(pytest.skip.Exception, match="nothing is installed"):
        lacks()
    with pytest.raises(ExceptionGroup, match="1 of 2 rows are wrong: 2"):
        is_wrong()
