"""The lists: each is one table of fields, which page, terminal, commands and JSON draw."""
