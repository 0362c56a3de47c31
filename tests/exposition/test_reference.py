"""The documentation of the metrics."""

import re
from pathlib import Path

from docs.generators.metric_reference import write_reference
from streaming.common.definitions.metric import Metric
from streaming.common.definitions.sections import SECTIONS, Section, section_of
from tests.tables import each_row

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_document_is_what_the_definitions_say() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == write_reference()


@each_row("metric", {metric.name: metric for metrics in SECTIONS.values() for metric in metrics}.values())
def test_every_metric_has_one_row_in_each_of_its_sections(metric: Metric) -> None:
    found = [
        each.partition("\n")[0]
        for each in write_reference().split("\n## ")
        if len(re.findall(rf"^- `{metric.name}`[: ]", each, re.MULTILINE)) == 1
    ]
    assert found == [str(section) for section, metrics in SECTIONS.items() if metric in metrics]
    assert found[0] == section_of(metric)


def test_sections_come_in_their_order() -> None:
    heads = [line.removeprefix("## ") for line in write_reference().splitlines() if line.startswith("## ")]
    assert heads == list(Section)


def test_no_text_breaks_its_line() -> None:
    lines = [line for line in write_reference().partition("\n## ")[2].splitlines() if line.startswith("- `")]
    assert len(lines) == sum(map(len, SECTIONS.values()))
