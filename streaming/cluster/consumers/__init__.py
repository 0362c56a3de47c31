"""Consumer groups: rounds that follow commits and logs, what is left to read, stopped, lost or about to be, and the messages of it."""
