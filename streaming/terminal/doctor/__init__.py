"""Looks for what keeps segtail from working on this machine, one module a check. It changes nothing, and needs neither Java nor PySpark."""
