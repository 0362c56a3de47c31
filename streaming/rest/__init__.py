"""What lies in log dirs, of one broker or several, read once and from the files alone: what the offline commands tell of."""
