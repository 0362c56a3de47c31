"""The metrics: definitions, the table of absolute values and its rendering, the HTTP server and its page."""
