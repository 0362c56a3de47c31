"""The benches can be run by name, and what the docs say to run is one of them."""

import re
from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHES

DOCS = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.stem)
def test_every_bench_that_a_page_names_is_there(doc: Path) -> None:
    commands = re.findall(r"^    \.venv/bin/python -m tests\.bench ([a-z ]+)$", doc.read_text(), re.MULTILINE)
    assert {name for names in commands for name in names.split()} <= set(BENCHES)
