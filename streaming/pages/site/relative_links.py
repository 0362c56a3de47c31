"""Addresses as they leave: relative to the view, so that the page works below any path that a proxy takes away before the job is asked.

Everywhere else an address begins with "/", the page itself, and is read and compared as that.
"""

import re

_ADDRESS = re.compile(r'(?<= )(href|src|action)="/')
"""An address of the page in a tag. Nowhere else is a quotation mark written as it is: in every value it is escaped."""


def relative(html: str, path: str) -> str:
    """The HTML of the view at ``path``, encoded as it was asked for, with all addresses of the page relative to that."""
    root = "../" * (path.count("/") - 1) or "./"
    return _ADDRESS.sub(rf'\1="{root}', html)
