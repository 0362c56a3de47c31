"""What docs/internals/prices.md says: each module has one row, and the numbers are nearly those of today."""

from collections import Counter
from pathlib import Path

import pytest

from docs.generators.prices import CORE, ENTRIES, SHARED, Feature, count, modules_of, read_features, read_imports, write_prices

DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "prices.md"


def rows(imports: dict[str, str], *features: Feature) -> dict[str, set[str]]:
    """The rows of a small product that begins with ``main``."""
    needs = {f"streaming.{name}": {f"streaming.{each}" for each in found.split()} for name, found in imports.items()}
    found = modules_of(needs, features, ["main"])
    return {name: {each.removeprefix("streaming.") for each in modules} for name, modules in found.items()}


def test_the_document_is_current() -> None:
    text, features = DOCUMENT.read_text(encoding="utf-8"), read_features()
    assert write_prices(text, features, count(features)) == text, "make docs"


def test_each_module_is_in_one_row_and_each_feature_has_something() -> None:
    needs, features = read_imports(), read_features()
    of_rows = modules_of(needs, features, ENTRIES)
    found = Counter(module for modules in of_rows.values() for module in modules)
    assert {module: found[module] for module in needs if found[module] != 1} == {}, "nobody needs it, or two features have it"
    assert [each.name for each in features if each.doors and not of_rows[each.name]] == []


def test_a_feature_has_what_only_its_doors_need() -> None:
    found = rows({"main": "top disk", "top": "screen disk", "screen": "keys", "keys": "", "disk": ""}, Feature("top", doors="top"))
    assert found == {CORE: {"main", "disk"}, "top": {"top", "screen", "keys"}, SHARED: set()}


def test_what_two_features_need_is_shared() -> None:
    found = rows({"main": "top why", "top": "words", "why": "words", "words": ""}, Feature("top", doors="top"), Feature("why", doors="why"))
    assert found == {CORE: {"main"}, "top": {"top"}, "why": {"why"}, SHARED: {"words"}}


def test_a_part_is_not_the_wholes() -> None:
    imports = {"main": "site", "site": "site.views", "site.views": "site.moves", "site.moves": "steps", "steps": ""}
    found = rows(imports, Feature("page", doors="site"), Feature("moves", doors="site.moves"))
    assert found == {CORE: {"main"}, "page": {"site", "site.views"}, "moves": {"site.moves", "steps"}, SHARED: set()}


def test_a_name_that_stands_for_nothing_is_named() -> None:
    with pytest.raises(ValueError, match=r"top: there is no module to$"):
        rows({"main": "top", "top": ""}, Feature("top", doors="to"))
    for feature in (Feature("top", tests="tops"), Feature("top", documents="top.md#Colours"), Feature("top", files="tops")):
        with pytest.raises(ValueError, match=r"there is nothing in .* with the name top(s|\.md#Colours)$"):
            count([feature])


def test_a_number_stays_until_it_is_a_tenth_wrong() -> None:
    features = [Feature("top", "who is on call")]
    first = write_prices("", features, {"top": (1044, 0, 90, 7)})
    assert first.splitlines()[-1] == "| top | 1,000 |  | 90 | 7 | who is on call |"
    assert write_prices(first, features, {"top": (1111, 0, 100, 7)}) == first
    assert write_prices(first, features, {"top": (1112, 3, 81, 0)}).splitlines()[-1] == "| top | 1,100 | 3 | 81 |  | who is on call |"


def test_what_nobody_asks_for_says_so_and_the_dearest_comes_first() -> None:
    found = write_prices("", [Feature("scrub"), Feature("top", "who is on call")], {"scrub": (9, 0, 0, 0), "top": (10, 0, 0, 0)})
    assert [line.split(" | ")[0] for line in found.splitlines()[-2:]] == ["| top", "| scrub"]
    assert found.splitlines()[-1].endswith("| **nobody** |")
