"""Sends the journal's events as Arrow rows over Flight: server, client, and the agent's view of its cluster."""

import os

# gRPC writes lines in its own format to standard error, without the address of the other side. An error is raised here instead, with the
# address.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
