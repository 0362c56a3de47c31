"""The views of the page about runbooks: the list of all, and one."""

from __future__ import annotations

from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from streaming.broker.protocol.status_json import Status
from streaming.pages.site.page_views import PageView
from streaming.shipped.runbooks import find_runbook, runbook_index

_ELEMENTS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "strong": "strong",
    "em": "em",
}


def runbook_view(name: str, status: Status) -> RunbookView | None:
    """The runbook of this name, with "" the list; None if there is none."""
    found = find_runbook(name) if name else runbook_index()
    if found is None:
        return None
    return RunbookView(title=found.name, here="", status=status, pieces=pieces_of(found.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPiece:
    """A text, or an element around others, of preformatted text around its lines; ``href`` of a link."""

    element: str = ""
    text: str = ""
    href: str = ""
    inner: tuple[DocumentPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookView(PageView):
    """A document."""

    pieces: tuple[DocumentPiece, ...]


def pieces_of(markdown: str) -> tuple[DocumentPiece, ...]:
    """The blocks of a document. Links to other runbooks lead to them on the page; of other links that are relative only the words stay.

    Markdown of a runbook as values that a template writes down: elements with texts in them, each text to be escaped as any other.
    markdown-it reads it, which rich brings along. What it makes of HTML, images and whatever else no runbook needs is text or
    nothing.
    """
    parsed = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    return _inner(SyntaxTreeNode(parsed))


def _inner(node: SyntaxTreeNode) -> tuple[DocumentPiece, ...]:
    return tuple(piece for each in node.children for piece in _pieces(each))


def _pieces(node: SyntaxTreeNode) -> tuple[DocumentPiece, ...]:
    match node.type:
        case "inline":
            return _inner(node)
        case "text":
            return (DocumentPiece(text=node.content),)
        case "softbreak" | "hardbreak":
            return (DocumentPiece(text=" "),)
        case "code_inline":
            return (DocumentPiece(element="code", inner=(DocumentPiece(text=" ".join(node.content.split())),)),)
        case "fence" | "code_block":
            lines = tuple(DocumentPiece(text=line) for line in node.content.splitlines())
            return (DocumentPiece(element="pre", inner=lines),)
        case "link":
            href = _href(str(node.attrs.get("href", "")))
            return (DocumentPiece(element="a", href=href, inner=_inner(node)),) if href else _inner(node)
        case "heading":
            return (DocumentPiece(element=node.tag, inner=_inner(node)),)  # h1 to h6
        case "paragraph" if node.hidden:  # of a tight list
            return _inner(node)
        case "table":
            return (DocumentPiece(element="table", inner=(_caption(node), *_inner(node))),)
        case kind if kind in _ELEMENTS:
            return (DocumentPiece(element=_ELEMENTS[kind], inner=_inner(node)),)
        case _:
            return (DocumentPiece(text=node.content),) if node.content else ()


def _href(target: str) -> str:
    """Where a link of a runbook leads on the page, "" where that is not served."""
    if target.startswith(("https://", "http://")):
        return target
    name, _, _ = target.partition("#")
    return f"/runbooks/{name.removesuffix('.md')}" if name.endswith(".md") and "/" not in name else ""


def _caption(table: SyntaxTreeNode) -> DocumentPiece:
    """What a table is about, for those who do not see it: its heads."""
    heads = [each.content for each in table.walk() if each.type == "inline" and each.parent is not None and each.parent.type == "th"]
    return DocumentPiece(element="caption", inner=(DocumentPiece(text=", ".join(heads)),))
