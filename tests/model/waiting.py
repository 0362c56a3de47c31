"""What the model would do, and does not do yet: each of these waits for a fault to be mended. Take a line out, and the model does it."""

WAITS: dict[str, str] = {
    "loss told once": "a loss that was told and did not arrive is forgotten with the agent's process",
    "unread when it leaves": "what was not read of a log that leaves is neither counted nor skipped",
    "restored and further on": "a restored journal that was written on is taken for the one it was",
    "new log as a job begins": "a log that appears with a job's beginning begins for every job where that one wants it",
    "told before a beginning": "what an agent finds out about the time before a job's beginning is told to that job, too",
    "begun while a dir is away": "a job that begins while a log dir is away never gets its logs' beginning",
}


def waits(what: str) -> bool:
    """Whether the model leaves this out for now."""
    return what in WAITS
