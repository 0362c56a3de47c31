"""The limits on content that docs/security.md names are those of the code."""

import importlib
import re
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs" / "security.md"
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1, "characters": 1}


def test_each_limit_of_content_is_that_of_the_code() -> None:
    section = _DOCS.read_text(encoding="utf-8").partition("\n## Content\n")[2].partition("\n## ")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| ") and ".py` `" in row]
    assert len(rows) == 22
    for row in rows:
        found, named = re.match(r"(?:(?:0 to )?2\^)?([\d,]+) ?(\w*)", row[1]), re.search(r"`([\w/]+)\.py` `(\w+)`", row[3])
        assert found is not None
        assert named is not None
        module = importlib.import_module(f"streaming.{named[1].replace('/', '.')}")
        number = int(found[1].replace(",", ""))
        limit = 1 << number if "2^" in found[0] else number * _UNITS[found[2]]
        assert getattr(module, named[2]) == limit, row
