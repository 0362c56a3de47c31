"""What answers over HTTP, for the exporter and for an agent's own metrics: bounded connections, TLS and passwords by a web config file."""
