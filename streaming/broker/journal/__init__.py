"""The journal: the last events in order, in memory, where logs stand, and what is kept of scans."""
