"""What an agent and its clients exchange over gRPC: messages, versions, tokens, and rows."""
