"""Reports of processes of brokers."""

from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.rules.broker_process import ProcessState

UP = ProcessStatus(state=ProcessState.UP, last_ms=9_000)


ENDED = ProcessStatus(state=ProcessState.ENDED, since_ms=9_000, last_ms=8_000)


FREE = ProcessStatus(state=ProcessState.FREE, last_ms=8_000)


UNKNOWN = ProcessStatus(state=ProcessState.UNKNOWN, why="/d0/.lock may not be read")
