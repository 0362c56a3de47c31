"""segtail: a Spark Structured Streaming tail of Kafka's active log segments."""

import os

# gRPC writes lines in its own format to standard error, without the address of the other side. An error is raised here instead, with the
# address. gRPC reads this when it is imported, so it stands before every import of it.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

__version__ = "0.1.0"
