"""Runbooks on the page: every one readable and linked, and nothing of a document is taken for markup."""

import re

import pytest

from streaming.pages.site.page_site import POLICY, PageSite
from streaming.pages.site.runbook_view import DocumentPiece, RunbookView, pieces_of
from streaming.shipped.runbooks import runbooks
from tests.site.page_reading import ask, read
from tests.site.page_world import MadeUpJob, site_of
from tests.tables import each_row


@pytest.fixture(scope="module")
def site() -> PageSite:
    return site_of(MadeUpJob())


def texts(pieces: tuple[DocumentPiece, ...]) -> str:
    return "".join(each.text + texts(each.inner) for each in pieces if each.element != "caption")


def plain(markdown: str) -> str:
    """The words of a document, without marks, links and spaces."""
    without = re.sub(r"\]\([^)]*\)|^\[[^\]]+\]: \S+$", "", markdown, flags=re.MULTILINE)
    return re.sub(r"^ *```\w*|^\d+\. |^\|[-| ]+\|$|[\s`*#|\[\]\\-]|\d+\.(?= )", "", without, flags=re.MULTILINE)


def test_every_runbook_is_served_whole(site: PageSite) -> None:
    for each in runbooks():
        answer = ask(site, f"/runbooks/{each.name}")
        assert (answer.status, answer.content_type, answer.headers["Content-Security-Policy"]) == (200, "text/html; charset=utf-8", POLICY)
        assert plain(texts(pieces_of(each.text))) == plain(each.text), each.name
        assert ask(site, f"/runbooks/{each.name}.md").body == answer.body


def test_links_of_runbooks_lead_to_pages_that_are_there(site: PageSite) -> None:
    found = {href for path in ("", *(f"/{each.name}" for each in runbooks())) for href in read(site, f"/runbooks{path}").links()}
    assert {f"/runbooks/{each.name}" for each in runbooks()} <= found
    assert [href for href in sorted(found) if href.startswith("/runbooks") and ask(site, href).status != 200] == []
    assert [href for href in found if not href.startswith(("/", "https://", "#"))] == []


def test_a_card_leads_to_its_runbook(site: PageSite) -> None:
    assert "/runbooks/TransactionHanging" in read(site, "/").links()


@each_row("path", ["/runbooks/Nothing", "/runbooks/README", "/runbooks/..%2FREADME", "/runbooks/GroupStopped/1", "/runbooks/%ff"])
def test_there_is_no_other_page(path: str, site: PageSite) -> None:
    assert ask(site, path).status == 404


@each_row(
    ("markdown", "html"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a <b onclick=x>c</b>", "&lt;b onclick=x&gt;"),
        ("`<i>`", "<code>&lt;i&gt;</code>"),
        ("```\n<i>\n```", '<pre tabindex="0">&lt;i&gt;\n</pre>'),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("[a](../groups.md)", "<p>a</p>"),
        ("[a](LogCorrupt.md#x)", '<a href="/runbooks/LogCorrupt">a</a>'),
        ('[a](https://example.org/"onx=)', '<a href="https://example.org/%22onx=">a</a>'),
        ("![a](https://example.org/x.png)", "<p>a</p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("| a |\n|---|\n| `b` |", "<tbody><tr><td><code>b</code></td></tr></tbody>"),
    ],
)
def test_markdown_is_written_down_and_nothing_else(markdown: str, html: str) -> None:
    from streaming.pages.site.page_site import _rendered

    view = RunbookView(title="t", here="", status=MadeUpJob().state, pieces=pieces_of(markdown))
    assert html in _rendered(view, scraped=True)


def test_the_head_says_how_it_is_as_in_every_view(site: PageSite) -> None:
    assert read(site, "/runbooks/GroupStopped").one("verdict").text
