"""What the document says that a client may cost is what the code allows."""

import re
from pathlib import Path

from streaming.common import logs
from streaming.common.web import places

ROOT = Path(__file__).parents[2]
UNITS = {"": 1.0, "bytes": 1.0, "s": 1.0, "a second": logs.EVERY_SECONDS}


def documented() -> list[float]:
    """The figures of the table, in its order."""
    section = (ROOT / "docs" / "security.md").read_text().partition("\n### Limits\n")[2].partition("\n#")[0]
    figures = re.findall(r"^\| [^|]+ \| ([\d,]+) ?(bytes|s|a second|)[^|]* \| [^|]+ \|$", section, re.MULTILINE)
    return [float(figure.replace(",", "")) * UNITS[unit] for figure, unit in figures]


def test_the_table_of_limits_has_all_figures_in_their_order() -> None:
    figures = {name: float(value) for name, value in vars(places).items() if name.isupper()}
    retry = figures.pop("RETRY_SECONDS")
    assert documented() == [*figures.values(), 1.0]
    assert f"`Retry-After: {retry:.0f}`" in (ROOT / "docs" / "security.md").read_text()
