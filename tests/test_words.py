"""One word for one thing: names in the code are the glossary's, and words that were given up do not come back."""

import ast
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

GIVEN_UP = {
    "befell": "counted for each log",
    "bench": "judge",
    "enrol": "register",
    "forms": "option types",
    "fresh": "new, reloading",
    "glance": "listing",
    "greet": "register",
    "heed": "take, read",
    "hello": "register",
    "news": "changes",
    "overview": "host status",
    "roster": "registry",
    "said": "reported, logged",
    "spot": "boundary",
    "standing": "replica offsets, phase",
    "stirred": "changed",
    "survey": "rescan",
    "tell": "publish, send, log",
    "teller": "publisher",
    "told": "published, sent, stored, logged",
    "trouble": "error, problem",
    "weigh": "judge",
    "willing": "available",
}
"""The word, and what is said instead."""


BEHIND = {
    "broker/agent/cluster_view.py: BEHIND",
    "pages/api/status_message.py: behind_bytes",
    "pages/api/status_message.py: behind_ms",
    "terminal/doctor/job_check.py: behind_ms",
    "cluster/view/exported.py: behind",
    "cluster/view/moves.py: bytes_behind",
    "cluster/view/observer.py: behind",
    "broker/protocol/status_json.py: behind_bytes",
    "broker/protocol/status_json.py: behind_ms",
    "broker/protocol/broker_json.py: behind_ms",
    "pages/api/broker_rows.py: behind_ms",
    "rules/copying.py: bytes_behind",
    "broker/scrub/scrub_progress.py: behind",  # the key of a stored file
    "broker/scrub/passes.py: behind",
    "simulator/broker.py: behind",
    "pages/site/home_view.py: behind_bytes",
    "pages/site/home_view.py: behind_ms",
    "broker/watcher/cluster_knowledge.py: BEHIND",
    "broker/watcher/leading.py: BEHIND",
    "broker/watcher/tail.py: FAR_BEHIND",
    "broker/watcher/tail.py: far_behind",
    "broker/watcher/tail_states.py: FAR_BEHIND",
    "broker/watcher/grown_logs.py: far_behind",
}
"""Where a name has "behind": it means a lag. What has not been read yet comes after a cursor."""

PARTICIPLES = {"asked", "found", "kept", "known", "of", "seen", "shown"}
"""What is no name of a parameter: it does not say what is given."""

TWICE = {
    "Committed", "Status",  # a message, whose name goes over the wire or into its errors, and what it is about
    "LogDir", "Record",  # Kafka's word, of the simulator that writes it and of the reader
}  # fmt: skip
"""The names that two classes have."""


@cache
def _names(path: Path) -> dict[str, int]:
    """The names in a file, each with the line in which it comes last."""
    with tokenize.open(path) as file:
        return {token.string: token.start[0] for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME}


def _words(name: str) -> set[str]:
    parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    return parts | {part.removesuffix("ed") for part in parts} | {part.removesuffix("s") for part in parts}


def _recorded() -> set[str]:
    """Scripts of recordings: a word that is changed there wants a new recording."""
    recordings = (json.loads(path.read_text()) for path in (ROOT / "tests" / "data" / "recorded").glob("*.json"))
    return {name for recording in recordings for name in recording["script"]} - {"tests/broker/kafka.py"}


def test_no_name_holds_a_word_that_was_given_up() -> None:
    """Tests have benches, besides."""
    recorded = _recorded()
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}: say {', '.join(GIVEN_UP[word] for word in sorted(given_up))}"
        for folder, allowed in (("streaming", set()), ("tests", {"bench"}))
        for path in sorted((ROOT / folder).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in recorded
        for name, line in _names(path).items()
        if (given_up := (_words(name) & GIVEN_UP.keys()) - allowed)
    ]
    assert found == []


def _trees() -> Iterator[tuple[str, ast.AST]]:
    streaming = ROOT / "streaming"
    for path in sorted(streaming.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield str(path.relative_to(streaming)), node


def test_parameters_are_nouns() -> None:
    found = [f"{path}:{node.lineno}: {node.arg}" for path, node in _trees() if isinstance(node, ast.arg) and node.arg in PARTICIPLES]
    assert found == []


def test_a_class_has_its_name_alone() -> None:
    names = Counter(node.name for _, node in _trees() if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} == TWICE


def test_behind_is_a_lag_and_what_is_not_read_yet_comes_after_the_cursor() -> None:
    streaming = ROOT / "streaming"
    found = {
        f"{path.relative_to(streaming)}: {name}" for path in streaming.rglob("*.py") for name in _names(path) if "behind" in _words(name)
    }
    assert found == BEHIND


def test_no_module_is_called_by_one() -> None:
    modules = [path for path in (ROOT / "streaming").rglob("*.py") if _words(path.stem) & GIVEN_UP.keys()]
    assert modules == []


def test_the_glossary_is_in_order_and_says_each_word_once() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text().replace("**", "")  # the marks of those that operators meet
    terms = re.findall(r"^\| ([^|]+) \| (?!-|meaning)", glossary, re.MULTILINE)
    assert len(terms) > 60
    assert len(set(terms)) == len(terms)
    parts = glossary.split("\n## ")[1:]
    for part in parts:
        listed = re.findall(r"^\| ([^|]+) \| (?!-|meaning)", part, re.MULTILINE)
        assert listed == sorted(listed, key=str.lower), part.splitlines()[0]


def test_the_glossary_s_own_words_are_words_of_the_code() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").replace("**", "")
    own = re.findall(r"^\| ([\w ]+?)(?: \([^)]*\))? \|", glossary.partition("## segtail")[2], re.M)[1:]
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "streaming").rglob("*.py")).lower().replace("_", " ")
    assert len(own) > 30
    assert [term for term in own if not re.search(rf"\b{term.lower()}", code)] == []
