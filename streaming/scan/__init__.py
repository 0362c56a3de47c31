"""The scan: finds, checks and sums many batches at once, as numpy columns. It reads the format by `streaming.kafka`, and knows no files."""
