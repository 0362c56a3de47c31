"""Tests against a real Kafka broker, and what starts it, feeds it and asks its own tools."""
