"""The journal's events as Arrow rows over Flight: server, client, and what an agent knows of its cluster."""

import os

# gRPC writes lines of its own form to standard error, without the other side's address. What goes wrong is an error here, with it.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
