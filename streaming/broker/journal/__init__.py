"""The journal: events in order, with the cursors up to which logs are read, in one SQLite file. All SQL is in this room."""
