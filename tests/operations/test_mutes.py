"""What docs/alerts.md says of inhibitions, held against conf/alertmanager.yml."""

import re
from itertools import product
from typing import Any

import yaml

from tests.alerts.rendering import CONF
from tests.operations.table import DOCUMENT, MUTES, body, of_document

_NAME = re.compile(r"`(\w+)[`{]")
_MATCHER = re.compile(r'(\w+) (=~?) "(.*)"')


def _selectors(matchers: list[str]) -> str:
    """Names of alerts as the page writes them, each with what else has to match."""
    parts = [found.groups() for matcher in matchers if (found := _MATCHER.fullmatch(matcher))]
    assert len(parts) == len(matchers), matchers
    names = [name for label, _, value in parts if label == "alertname" for name in value.split("|")]
    # A table has no room for the sign between alternatives: each is written by itself.
    others = [[f'{label}="{each}"' for each in value.split("|")] for label, _, value in parts if label != "alertname"]
    alternatives = [",".join(each) for each in product(*others)]
    return ", ".join(f"`{name}{{{each}}}`" if each else f"`{name}`" for name in names or [""] for each in alternatives)


def _cells(rule: dict[str, Any]) -> tuple[str, str, str]:
    same = [label for label in rule["equal"] if label != "job"]
    return _selectors(rule["source_matchers"]), _selectors(rule["target_matchers"]), ", ".join(same) or "cluster"


def test_the_page_has_every_inhibition_and_no_other() -> None:
    rules = yaml.safe_load((CONF / "alertmanager.yml").read_text())["inhibit_rules"]
    assert [tuple(cells) for cells in body(DOCUMENT.read_text(encoding="utf-8"), MUTES)] == [_cells(rule) for rule in rules]


def test_no_inhibition_goes_beyond_its_cluster() -> None:
    rules = yaml.safe_load((CONF / "alertmanager.yml").read_text())["inhibit_rules"]
    assert all("job" in rule["equal"] for rule in rules)


TICKET_AFTERWARDS = {("UncleanElection", "LogTruncated")}
"""A ticket about what is to be done once the page is over."""


def _keeps(alert: str) -> int:
    """Minutes that it fires on when its expression is over."""
    (rule,) = yaml.safe_load((CONF / "alerts" / f"{alert}.yaml").read_text())["groups"][0]["rules"]
    return int(rule["keep_firing_for"].removesuffix("m"))


def test_what_is_muted_is_over_first_so_that_nobody_is_reported_it_when_it_is_over() -> None:
    rows = body(DOCUMENT.read_text(encoding="utf-8"), MUTES)
    pairs = {(by, muted) for first, second, _ in rows for by in _NAME.findall(first) for muted in _NAME.findall(second)}
    assert pairs > TICKET_AFTERWARDS
    assert [pair for pair in pairs - TICKET_AFTERWARDS if _keeps(pair[0]) <= _keeps(pair[1])] == []


def test_a_row_may_name_only_what_is_muted_there() -> None:
    """An alert that stands in a column of muted ones is a target by its name or by its scope."""
    names = {name for row in of_document() for name in row.muted}
    targets = "".join(cells[1] for cells in body(DOCUMENT.read_text(encoding="utf-8"), MUTES))
    for name in names:
        (rule,) = yaml.safe_load((CONF / "alerts" / f"{name}.yaml").read_text())["groups"][0]["rules"]
        assert f"`{name}" in targets or f'`{{scope="{rule["labels"]["scope"]}"}}`' in targets, name
