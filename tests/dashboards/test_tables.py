"""The tables that the dashboards are made of: what stands in them comes out, and what they cannot mean is refused."""

from pathlib import Path

import pytest

from docs.dashboards import tables
from docs.dashboards.pairs import OF_A_TARGET, one_of_a_pair
from docs.dashboards.panels import at_end
from docs.dashboards.tables import Panel, promql, read
from tests.tables import each_row

TABLE = """\
title: One
text: What it answers.
variables: [broker]
rows:
  - row: First
    panels:
      - chart: Bytes
        queries:
          '{{topic}}': sum by (topic) (rate(m{TOPIC}[RATE]))
        text: BROKER stays as it is in a text.
        show: {unit: Bps, top: 10}
      - {use: late_transactions, selector: ONE, rows: 20, height: 6}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "late_transactions.yaml").write_text(
        "table: Late\nquery: topk(ROWS, m{SELECTOR})\ntext: All.\ncolumns: [[topic]]\nshow: {unit: s, height: 9}\n"
    )
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    return tmp_path


def panels(folder: Path, table: str = TABLE) -> list[Panel]:
    (folder / "one.yaml").write_text(table)
    return [panel for _, row in read("one").rows for panel in row]


def test_words_of_queries_are_filled_in_and_texts_stay(folder: Path) -> None:
    bytes_, late = panels(folder)
    assert (bytes_.kind, bytes_.title, bytes_.text) == ("chart", "Bytes", "BROKER stays as it is in a text.")
    assert bytes_.queries == {"{{topic}}": 'sum by (topic) (rate(m{job=~"$job",broker=~"$broker",topic=~"$topic"}[$__rate_interval]))'}
    assert late.queries == {"": 'topk(20, m{job="$job",broker=~"$broker",topic="$topic",partition="$partition"})'}
    assert (late.show.height, late.show.unit) == (6, "s")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [("unit: Bps, colour: red", "colour"), ("top: 10", "unit"), ("unit: Bps, steps: [[red, 1]]", "steps"), ("unit: 7", "unit")],
)
def test_what_a_panel_cannot_mean_is_named(folder: Path, wrong: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        panels(folder, TABLE.replace("unit: Bps, top: 10", wrong))


def test_a_word_within_another_is_none() -> None:
    assert promql("m_RATE{BROKERS} TOPIC") == 'm_RATE{BROKERS} job=~"$job",broker=~"$broker",topic=~"$topic"'


@each_row(
    "mixed",
    [
        "sum(segtail_a)",
        "rate(segtail_a[RATE])",
        'segtail_a{topic=~"$topic"}',
        "segtail_a{BROKER} / segtail_b",
        "scrape_samples_scraped",
        'ALERTS{severity="critical"}',
        "up == 0 and on (job) segtail_a{CLUSTER}",
    ],
)
def test_a_metric_of_all_clusters_is_refused(mixed: str) -> None:
    with pytest.raises(ValueError, match=r"write .+\{CLUSTER}"):
        promql(mixed)


@each_row(
    ("query", "counted"),
    [
        ("sum(segtail_a{x})", "sum(max without (TARGETS) (segtail_a{x}))"),
        ("sum by (topic) (rate(segtail_a{x}[5m]))", "sum by (topic) (max without (TARGETS) (rate(segtail_a{x}[5m])))"),
        ("max by (topic) (segtail_a{x})", "max by (topic) (segtail_a{x})"),
        ("min(segtail_a{x} @ end())", "min(segtail_a{x} @ end())"),
        (
            "1 - min(segtail_a{x} / segtail_b{x})",
            "1 - min(max without (TARGETS) (segtail_a{x}) / max without (TARGETS) (segtail_b{x}))",
        ),
        ("a unless on (job) segtail_b{x}", "a unless on (job) segtail_b{x}"),
        ("sum(rate(segtail_query_a{x}[5m]))", "sum(rate(segtail_query_a{x}[5m]))"),
        (
            "topk(9, max by (a) (segtail_a{x}) * on (a) group_left (b, c) max by (a, b, c) (segtail_b{x}))",
            "topk(9, max by (a) (segtail_a{x}) * on (a) group_left (b, c) topk by (a) (1, max by (a, b, c) (segtail_b{x})))",
        ),
    ],
)
def test_of_a_pair_of_segtails_one_counts(query: str, counted: str) -> None:
    assert one_of_a_pair(query) == counted.replace("TARGETS", OF_A_TARGET)


@pytest.mark.parametrize(
    ("query", "ranked"),
    [
        ("sum by (topic) (m{a})", "sum by (topic) (m{a} @ end())"),
        ("sum by (topic) (rate(m{a}[$__rate_interval]))", "sum by (topic) (rate(m{a}[1h] @ end()))"),
        ("time() - min by (topic) (m{a})", "-min by (topic) (m{a} @ end())"),
        ("1 - m{a} / n{a}", "1 - m{a} @ end() / n{a} @ end()"),
        ("sum by (topic) (increase(m{a}[30m]))", "sum by (topic) (increase(m{a}[30m] @ end()))"),
    ],
)
def test_series_are_ranked_by_the_end_of_what_is_shown(query: str, ranked: str) -> None:
    assert at_end(query) == ranked
