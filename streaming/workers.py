"""What a Python worker of Spark's does once, so that its later tasks are cheap."""

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Keep what was imported out of garbage collection, for the rest of this process.

    PySpark's daemon collects garbage after every task (``pyspark/daemon.py``), over all objects of all modules, 20 ms each time. What is
    alive when this is called first is never freed: call it after a task has imported what it needs, and before it has read anything large.
    """
    gc.collect()
    gc.freeze()
