"""What `docs/prose.py` finds, and what it lets pass."""

import pytest

from docs.prose import found_in, of_markdown, of_python
from tests.tables import each_row

LONG = " ".join(["Word", *["word"] * 30])


def rules(found: list[tuple[int, str]]) -> list[str]:
    """The names of the rules that are broken."""
    return [said.partition(":")[0] for _, said in found]


@each_row(
    "text",
    [
        f"{LONG}.",
        f"- `name`: {LONG}",
        f"| a |\n|---|\n| {LONG} |",
        "# Reading a log\n",
        "# What Brokers write\n",
        "It is read in order to count.",
        "The Zookeeper of old.",
        "The report has a drill-down.",
    ],
)
def test_what_breaks_a_rule_in_a_document_is_found_once(text: str) -> None:
    assert len(list(found_in(of_markdown("a.md", text)))) == 1


@each_row(
    "text",
    [
        f"{LONG[:-5]}.",
        f"{LONG[:-5]}. {LONG[:-5]}.",
        f"Short ({LONG}).",
        f"Lists of {', '.join(['`x`'] * 40)}.",
        f"```\n{LONG}\n```",
        "# Meaning\n",
        "# What Kafka writes\n",
        "The rest of ZooKeeper, and `in order to`.",
    ],
)
def test_what_breaks_none_is_not(text: str) -> None:
    assert list(found_in(of_markdown("a.md", text))) == []


def test_what_is_found_has_the_line_of_its_block() -> None:
    text = "\n\n".join(["A line."] * 9 + ["In order to count.", "A line.", "Amongst others."])
    assert [line for line, _ in found_in(of_markdown("a.md", text))] == [23, 19]


def test_a_readme_has_shorter_sentences() -> None:
    text = " ".join(["word"] * 26)
    assert rules(list(found_in(of_markdown("README.md", text)))) == ["longest"]
    assert rules(list(found_in(of_markdown("docs/README.md", text)))) == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (f'"""{LONG}."""', 1),
        ('x = 1\nfail("Please give a log dir first")', 2),
        ('x = 1\nfail(f"Please give a log dir to {x}")', 2),
        (f'def f():\n    """{LONG}.\n\n    More.\n    """\n    return 1', 2),
        ('x = 1\nfail("please say it again")', 2),
    ],
)
def test_sentences_of_code_are_read_where_they_stand(source: str, line: int) -> None:
    assert [at for at, _ in found_in(of_python("a.py", source))] == [line]


@each_row(
    "source", [f'"""A line.\n\n{LONG}.\n"""', "# please give it a log dir", 'x = "SELECT please FROM the table of logs"', "please = 1"]
)
def test_other_parts_of_code_are_not(source: str) -> None:
    assert list(found_in(of_python("a.py", source))) == []
