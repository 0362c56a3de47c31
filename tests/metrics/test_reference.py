"""The documentation of the metrics."""

from pathlib import Path

import pytest

from streaming.metrics.definitions import METRICS, Metric, Section
from streaming.metrics.reference import write_reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_document_is_what_the_definitions_say() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == write_reference()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_has_one_row_under_its_section(metric: Metric) -> None:
    sections = write_reference().split("\n## ")
    (section,) = (each for each in sections if f"| `{metric.name}` |" in each)
    assert section.startswith(f"{metric.section}\n")


def test_sections_come_in_their_order_and_only_with_metrics() -> None:
    heads = [line.removeprefix("## ") for line in write_reference().splitlines() if line.startswith("## ")]
    assert heads == [section for section in Section if any(metric.section == section for metric in METRICS)]


def test_no_text_breaks_its_row() -> None:
    rows = [line for line in write_reference().splitlines() if line.startswith("| `")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {6}
