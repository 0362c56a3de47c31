"""The agent: one process beside a broker, which runs the watcher and serves the journal over HTTP."""
