"""An incident as Markdown: everything about it, and no name in it is taken for Markdown."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from streaming.broker.protocol.status_json import Consequence, Problem, Status
from streaming.pages.site.shown_incidents import incident_markdown

NOW = 1_763_000_000_000
STATUS = Status(at_ms=NOW, version="1", ready=True, verdict="", freshness="", cluster_id="5L6g", url="https://ops/segtail/")


def incident(**more: object) -> Problem:
    given: dict[str, object] = {"kind": "transaction_hanging", "severity": "warning", "what": "A transaction hangs in orders-3"}
    return Problem(**given | more)  # type: ignore[arg-type]


def shown(markdown: str) -> str:
    """The words that a reader sees: those of all texts, as they are parsed."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    return "\n".join("".join(child.content for child in each.children or ()) or each.content for each in tokens if each.content)


def test_it_has_what_since_when_what_follows_the_command_and_the_ways_to_page_and_runbook() -> None:
    of = incident(
        worst="critical",
        since_ms=NOW - 3_600_000,
        deadline_ms=NOW + 60_000,
        holds_back="12 offsets wait.",
        command="kafka-transactions.sh abort --topic orders",
        runbook="TransactionHanging",
        consequences=[Consequence(text="group billing: held up", severity="warning")],
        more_consequences=4,
    )
    assert incident_markdown(of, STATUS).splitlines() == [
        "**critical: A transaction hangs in orders-3**",
        "",
        "- since 2025-11-13T01:13:20Z",
        "- due 2025-11-13T02:14:20Z",
        "- 12 offsets wait.",
        "- warning: group billing: held up",
        "- and 4 more that follow from it",
        "",
        "```sh",
        "kafka-transactions.sh abort --topic orders",
        "```",
        "",
        "segtail, [as of 2025-11-13T02:13:20Z](https://ops/segtail/), cluster 5L6g; "
        "runbook [TransactionHanging](https://ops/segtail/runbooks/TransactionHanging)",
    ]


def test_where_nobody_reaches_the_page_there_is_no_link_and_without_a_command_the_reason() -> None:
    text = incident_markdown(
        incident(no_command="names are redacted here", runbook="X"), Status(at_ms=NOW, version="1", ready=True, verdict="", freshness="")
    )
    assert "no command: names are redacted here" in text
    assert text.endswith("segtail, as of 2025-11-13T02:13:20Z; runbook `segtail runbook X`")


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30))
def test_a_name_looks_as_it_is_whatever_is_in_it(name: str) -> None:
    text = shown(incident_markdown(incident(what=f"Group {name} has stopped", holds_back=f"x{name}y"), STATUS))
    assert f"warning: Group {name} has stopped" in text
    assert f"x{name}y" in text


@given(st.text("`a ", min_size=1, max_size=12))
def test_a_command_ends_no_fence(command: str) -> None:
    tokens = MarkdownIt("commonmark").parse(incident_markdown(incident(command=command), STATUS))
    assert [each.content for each in tokens if each.type == "fence"] == [f"{command}\n"]
