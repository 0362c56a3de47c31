"""What an agent and its clients exchange over HTTP: messages, versions, tokens, and rows."""
