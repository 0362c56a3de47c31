"""The client side of agents: finds their addresses, calls them, and asks all of them in parallel."""
