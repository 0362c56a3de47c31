"""From a view of the table to the messages that a page, the terminal and `/api/v1/` show."""
