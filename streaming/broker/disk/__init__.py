"""Reads log dirs: listing, identity, read-only windows. Only this package opens Kafka's files, and never for writing."""
