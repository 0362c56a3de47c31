"""How long tests wait for what hangs: a limit changes nothing but a failure, so no recording depends on it."""

SECONDS = 600
"""After so long what a test waits for hangs, and is not slow: an idle machine needs a fiftieth of it."""
