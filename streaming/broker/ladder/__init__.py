"""The ladder of a log: how many records and bytes lie between two offsets, without reading all that is between them."""
