"""What an agent and its clients exchange over gRPC: messages, versions, tokens, and rows."""

import os

# gRPC writes lines in its own format to standard error, without the address of the other side. An error is raised here instead, with the
# address.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
