"""Connects source, query and metrics, and keeps them alive."""
