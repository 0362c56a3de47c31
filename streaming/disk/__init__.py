"""What lies in a log dir: listing, identity, read-only windows. The only room that opens Kafka's files, and never for writing."""
