"""What the page needs beside its HTML, one style sheet and two scripts, and the headers that keep everything else out."""

from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files

from streaming.common.web.messages import Response
from streaming.pages.site.page_links import STATIC

_SCRIPT = "text/javascript; charset=utf-8"
ASSETS = {"site.css": "text/css; charset=utf-8", "site.js": _SCRIPT, "readings.js": _SCRIPT, "icon.svg": "image/svg+xml"}

POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in ("style-src", "script-src", "img-src", "connect-src", "form-action")),
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing that comes from elsewhere, and nothing inline, is shown or run."""

PAGE_SECURED = {"Content-Security-Policy": POLICY}
"""In place of the policy of other answers."""

_KEPT = {**PAGE_SECURED, "Cache-Control": "private, max-age=31536000, immutable"}
"""An asset's path changes with its content, so that a browser may keep it."""


@cache
def asset(name: str) -> Response | None:
    """The answer to a request for an asset, None if there is none with this name."""
    if name not in ASSETS:
        return None
    return Response(status=HTTPStatus.OK, content_type=ASSETS[name], body=_content(name), headers=_KEPT)


def _content(name: str) -> bytes:
    return files("streaming.pages.site").joinpath("static", name).read_bytes()


def static_path(name: str) -> str:
    """The path of an asset."""
    return f"{STATIC}{name}?v={sha256(_content(name)).hexdigest()[:12]}"
