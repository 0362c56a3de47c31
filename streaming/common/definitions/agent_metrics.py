"""An agent's own page: about the agent itself, not about Kafka's logs."""

from streaming.common.definitions.metric import Metric
from streaming.common.definitions.observer_metrics import AGENT_DOUBTS as AGENT_DOUBTS  # on both pages
from streaming.common.definitions.observer_metrics import HTTP_CUTS as HTTP_CUTS
from streaming.common.definitions.observer_metrics import HTTP_REFUSALS as HTTP_REFUSALS
from streaming.common.definitions.observer_metrics import WEB_FAILURES as WEB_FAILURES
from streaming.common.definitions.observer_metrics import WRONG_PASSWORDS as WRONG_PASSWORDS

BUILD = Metric(
    "segtail_agent_build_info", "The agent, its version and the brokers whose log dirs it watches.", ("version", "agent", "brokers")
)
LOGS = Metric("segtail_agent_logs", "Logs under watch.", ())
CAUGHT_UP = Metric("segtail_agent_caught_up", "1 if the agent has read everything that was there when it began.", ())
JOURNAL_SIZE = Metric("segtail_agent_journal_size_bytes", "Size of the events in memory.", ())
PUBLISHED_BYTES = Metric("segtail_agent_published_bytes_total", "Bytes of logs published since the agent began.", ())
PUBLISHED_EVENTS = Metric("segtail_agent_published_events_total", "Events published since the agent began.", ())
UNREADABLE_FILES = Metric("segtail_agent_unreadable_files", "Files and directories that the agent may not read.", ())
DESCRIPTOR_SHORTAGES = Metric(
    "segtail_agent_descriptor_shortages_total",
    "How often no descriptor was free to check a log dir (too many open files): it counts as it was, and is not reported as down.",
    (),
)
COORDINATOR_LOGS = Metric(
    "segtail_agent_coordinator_logs",
    "Logs of group coordinators: read up to what the agent has published of them, being read, or unavailable.",
    ("following",),
)
COORDINATOR_LOG_ERRORS = Metric(
    "segtail_agent_coordinator_log_errors_total", "How often a log of a group coordinator could not be read on.", ()
)
LADDER_UNFILLED = Metric(
    "segtail_agent_uncounted_bytes", "Bytes of closed segments whose records are not counted yet: see the option ladder_rate.", ()
)
LADDER_SIZE = Metric("segtail_agent_ladders_size_bytes", "Memory of the counts of all logs, without Python's own.", ())
SECURITY_FAILURES = Metric("segtail_agent_security_failures_total", "New certificates or tokens that could not be used for a minute.", ())
CERTIFICATE_END = Metric("segtail_agent_certificate_end_timestamp_seconds", "When the agent's certificate ends.", ())
CALLS = Metric("segtail_agent_calls_total", "Calls of jobs, by their result.", ("call", "result"))
ROWS = Metric("segtail_agent_rows_total", "Rows that were sent to jobs.", ())
UNAUTHORIZED = Metric("segtail_agent_unauthorized_total", "Calls without a token that this agent accepts.", ())
