"""The journal's events as Arrow rows over Flight: server, client, and what an agent knows of its cluster."""
