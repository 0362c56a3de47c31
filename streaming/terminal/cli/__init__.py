"""The command line: one file for each command, which is imported only when the command runs."""
