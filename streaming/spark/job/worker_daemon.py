"""Spark's Python daemon: like PySpark's own, but it imports what its workers need before they are forked, once for all of them.

PySpark imports after the fork, because libraries start threads. With `ENVIRON` they start none. The option
``spark.python.daemon.module`` names this module: Spark starts ``python -m MODULE pyspark.worker`` for the workers of tasks.
"""

import gc
import importlib

from pyspark import daemon

ENVIRON = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of an allocator that pyarrow brings along, whether or not it is used
    "OPENBLAS_NUM_THREADS": "1",  # numpy starts threads for linear algebra, which is not used here
    # otherwise each thread that allocates has an arena of its own, and no other thread can use its memory
    "MALLOC_ARENA_MAX": "2",
}
"""Variables that the daemon's environment must hold from the start, and the JVM's may hold."""

SHARED = ("pyspark.worker", "streaming.spark.query.processor", "streaming.spark.query.shard_fold", "streaming.spark.source.stream")
"""The modules that tasks import."""


def load() -> None:
    """Import what workers share, and keep it out of garbage collection, before and after the fork."""
    for module in SHARED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    daemon.manager()
