"""The metrics: definitions, the table of absolute values, its rendering, the HTTP server and its page."""
