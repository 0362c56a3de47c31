"""docs/reliability.md names a test for each fault of its list; test_promises.py sees that those tests are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS = 30
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_ROW = re.compile(r"^\| (\d+) \|.*$", re.MULTILINE)


def test_every_fault_of_the_list_names_a_test() -> None:
    document = (ROOT / "docs" / "reliability.md").read_text()
    rows = list(_ROW.finditer(document))
    assert [int(row[1]) for row in rows] == list(range(1, FAULTS + 1))
    assert [row[1] for row in rows if not _TEST.search(row[0])] == []
