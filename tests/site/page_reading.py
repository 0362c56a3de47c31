"""Reads a page as a browser's parser would, and asks a site without one."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

from streaming.common.web.messages import HttpRequest, Response
from streaming.pages.site.page_site import PageSite

_SITE = "http://page"
VOID = {"meta", "link", "input", "path", "br", "wbr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements of a page, in their order; each with its own text and that of what it holds.

    ``address``: where it was asked for. Addresses in it are read as a browser does that asks there.
    """

    html: str
    address: str = "/"
    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        element = Element(
            tag, {name: self._resolved(value) if name in ("href", "src", "action") else value for name, value in given.items()}
        )
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def _resolved(self, href: str) -> str:
        """An address within the page begins with "/" again."""
        return href if href.startswith(("#", "/")) else urljoin(f"{_SITE}{self.address}", href).removeprefix(_SITE)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return [each for each in self.elements if each.tag == tag]

    def links(self) -> list[str]:
        return [each.attributes["href"] for each in self.all("a")]

    def one(self, key: str) -> Element:
        (found,) = [each for each in self.elements if each.attributes.get("id") == key]
        return found


def ask(site: PageSite, address: str) -> Response:
    split = urlsplit(address)
    request = HttpRequest(path=split.path, query=split.query, client="127.0.0.1", user_agent="", accept="text/html", gzip=False)
    answer = site.answer(request)
    assert answer is not None, f"{address} is none of the page's"
    return answer


def read(site: PageSite, address: str, status: HTTPStatus = HTTPStatus.OK) -> Page:
    answer = ask(site, address)
    assert answer.status == status, f"{address}: {answer.body.decode()}"
    return Page(answer.body.decode(), address)
