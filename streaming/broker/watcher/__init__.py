"""Finds what changed on disk, and stores it in the journal."""
