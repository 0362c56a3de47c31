"""When the query checks for work: shortly before somebody reads the metrics."""
