"""docs/troubleshooting.md quotes what segtail and Spark really print, and leaves out no reason that a metric or an answer has."""

import ast
import json
import re
import zipfile
from functools import cache
from pathlib import Path

import pyspark
import yaml

from streaming.broker.protocol.agent_calls import Reason
from streaming.cluster.consumers.group_lag import LagReason
from streaming.common.java import OLDEST
from streaming.kafka.formats.names import META_PROPERTIES
from tests.docs.documented import ROOT
from tests.docs.running import HOLE
from tests.tables import each_row

TEXT = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
CONSTANTS = {"{OLDEST}": str(OLDEST), "{names.META_PROPERTIES}": META_PROPERTIES}
"""What stands in a message by its name in the code."""

OF_SPARK = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET")
_CELL = re.compile(r"^\| (?P<first>.+?) \| (?P<second>.+?) \| .*\|$", re.MULTILINE)
_QUOTE = re.compile(r"`([^`]+)`")


def quotes() -> list[str]:
    """The messages: what has several words, in the first two columns of the tables."""
    cells = [cell for row in _CELL.finditer(TEXT) for cell in (row["first"], row["second"])]
    found = [quote for cell in cells for quote in _QUOTE.findall(cell)]
    return [quote for quote in found if len(quote.split()) > 2 and quote not in OF_SPARK]


@cache
def messages() -> tuple[str, ...]:
    """All texts in the code, with the expressions in them as they are written."""
    found = []
    for path in sorted((ROOT / "streaming").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.append("".join(_written(part) for part in node.values))
    return tuple(found)


def _written(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    written = f"{{{ast.unparse(part.value)}}}"
    return CONSTANTS.get(written, written)


def is_printed(quote: str) -> bool:
    """Whether a text of the code has the parts of the quote, one after the other."""
    pattern = re.compile(".*".join(re.escape(part.strip()) for part in quote.split(HOLE)))
    return any(pattern.search(message) for message in messages())


@each_row("quote", quotes())
def test_a_message_is_one_of_the_code(quote: str) -> None:
    assert is_printed(quote)


def test_there_are_many_and_a_wrong_one_is_found() -> None:
    assert len(quotes()) > 45
    assert not is_printed("no log dir is given: name the moon")


def test_messages_of_spark_are_spark_s() -> None:
    home = Path(pyspark.__file__).parent
    assert OF_SPARK[1] in json.loads((home / "errors" / "error-conditions.json").read_text())
    (jar,) = (home / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as classes:
        assert OF_SPARK[0].encode() in classes.read("org/apache/spark/api/python/PythonWorkerFactory.class")
    assert [quote for quote in OF_SPARK if f"`{quote}`" not in TEXT] == []


def _rows(heading: str, text: str = TEXT) -> set[str]:
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {name for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for name in _QUOTE.findall(row)}


def test_every_reason_of_an_agent_has_a_row() -> None:
    assert _rows("An agent that does not take part") == {reason.value for reason in Reason}


def test_every_reason_of_a_lag_has_a_row() -> None:
    assert _rows("Why a group's lag is absent") == {reason.value for reason in LagReason}


def test_every_reason_of_observer_blind_has_a_row() -> None:
    rules = yaml.safe_load((ROOT / "conf" / "alerts" / "ObserverBlind.yaml").read_text())["groups"][0]["rules"]
    named = re.findall(r'"reason", "(\w+)"', str(rules[0]["expr"]))
    of_series = {"partition_series", "topic_series", "label_bytes"}
    runbook = (ROOT / "docs" / "runbooks" / "ObserverBlind.md").read_text(encoding="utf-8")
    assert _rows("Meaning", runbook) - {"reason"} == {*named, *of_series, "shared_log_dir", "clock"}
