"""Views as HTML: every value is escaped, whatever it holds."""

import json
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streaming.common.formatting import format_name
from streaming.pages.site.page_assets import ASSETS, static_path
from streaming.pages.site.page_views import PageView

REFRESH_SECONDS = 10
"""A browser asks for a view again so often; without a script three times as seldom, because that takes the reader's place on the page."""


def render(view: PageView) -> bytes:
    """A view as HTML in UTF-8."""
    name = type(view).__name__.removesuffix("View").lower()
    return _environment().get_template(f"{name}.html").render(view=view, refresh=REFRESH_SECONDS).encode()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("streaming.pages.site"),
        autoescape=True,  # everything, whatever a template is called
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_visible,
    )
    made.filters["name"] = format_name
    made.globals["assets"] = {name: static_path(name) for name in ASSETS}
    return made


def _visible(value: object) -> object:
    """The net below the escaping of names: nothing that cannot be seen, or turns a line around, is sent."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in value)
