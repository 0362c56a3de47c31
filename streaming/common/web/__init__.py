"""The HTTP server of the exporter and of an agent's own metrics: bounded connections, TLS and passwords from a web config file."""
