"""A declared list as lines of text, for faces that wrap no cell."""

from collections.abc import Sequence

from streaming.broker.protocol.json_message import PublicMessage
from streaming.common.formatting import NONE, format_table
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.listing import Listing


def text_table(listing: Listing, rows: Sequence[PublicMessage], times: Times) -> list[str]:
    """The headings, and the rows below each other, with the columns of such faces."""
    every = [(each, [each.cell_in(row, times).text for row in rows]) for each in listing.text_columns]
    shown = [(each, texts) for each, texts in every if not each.rare or any(text != NONE for text in texts)]
    columns = [each for each, _ in shown]
    cells = zip(*(texts for _, texts in shown), strict=True)
    right = [each.heading for each in columns if each.unit.is_number]
    return list(format_table([tuple(each.heading for each in columns), *cells], right))
