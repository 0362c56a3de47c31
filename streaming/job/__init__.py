"""Puts source, query and metrics together and keeps them alive."""
