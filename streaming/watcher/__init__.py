"""What changed on disk, and the journal that keeps it."""
