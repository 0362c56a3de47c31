"""A declared list as lines of text, for faces that wrap no cell."""

from collections.abc import Sequence

from streaming.broker.protocol.json_message import PublicMessage
from streaming.common.formatting import format_table
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.listing import Listing


def text_table(listing: Listing, rows: Sequence[PublicMessage], times: Times) -> list[str]:
    """The headings, and the rows below each other, with the columns of such faces."""
    columns = listing.text_columns
    cells = [tuple(each.cell_in(row, times).text for each in columns) for row in rows]
    right = [each.heading for each in columns if each.unit.is_number]
    return list(format_table([tuple(each.heading for each in columns), *cells], right))
