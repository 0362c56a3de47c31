"""The command line: one file a command, each of which is imported only when it is run."""
