"""Runs the agent as a process. One thread watches, another checks it, others answer. It ends with its parent or a signal."""

import gc
import logging
import os
import resource
import threading
import time
from contextlib import ExitStack
from functools import partial

import streaming
from streaming.broker.agent.call_answers import answers
from streaming.broker.agent.call_server import AgentServer, cannot_listen, refuse_taken
from streaming.broker.agent.health_server import AgentMetrics, HealthPages, HealthServer, Pulse
from streaming.broker.agent.parts import AgentOptions, Ending, Parts, send_address
from streaming.broker.agent.permissions import Rights
from streaming.broker.agent.polling_thread import Polls
from streaming.broker.agent.security import Security, open_security
from streaming.broker.agent.service import Service
from streaming.broker.disk.availability import LogDir, open_answering
from streaming.broker.disk.logdirs import refuse_inside
from streaming.broker.disk.opening import RESERVED, Calling, shortage
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.group_messages import Following
from streaming.broker.watcher.watcher import Doubt
from streaming.common import whole_files
from streaming.common.definitions import agent_metrics
from streaming.errors import UsageError

log = logging.getLogger(__name__)

NEW_OBJECTS = 50_000
"""So many more objects than at the last look until the youngest are looked through: a poll makes thousands, and frees as many."""

RIGHTS_EVERY_SECONDS = 600.0
"""How often the rights to read are checked: a broker may have got another umask."""

CLOSE_SECONDS = 2.0
"""How long running calls have to end."""

WANTED = 1 << 20
"""More than any broker has logs. A limit of "infinity" cannot be set on every system."""

FEW = 16_384


def serve(options: AgentOptions) -> None:
    """Run an agent until it is stopped.

    Raises:
        UsageError: the log dirs, an address, or a file of certificates, tokens or passwords cannot be used.
    """
    began = time.monotonic()
    collect_rarely()
    security = open_security(options.files, options.listen)
    refuse_taken(options.listen)
    log_dirs, silent = open_answering(options.log_dirs)
    log_dirs.log_changes()
    if options.redact_ids and not log_dirs.cluster_id:
        raise UsageError("redact_ids needs the cluster's id as its key, and the log dirs do not have it: brokers before 2.4 write none")
    if options.cache is not None:
        refuse_inside(options.cache, log_dirs, "--cache")
    raise_limit(sum(map(count_directories, log_dirs.available)))
    polls = Polls()
    ending = Ending(polls)
    ending.end_at_signals()
    if options.child:
        ending.end_with_parent()
    with ExitStack() as resources:
        metrics, pulse = AgentMetrics(), Pulse()
        pages = HealthPages(metrics, pulse)
        if options.metrics_listen is not None:
            health = HealthServer(options.metrics_listen, options.web_config, pages)
            resources.callback(health.close)
            log.info("agent metrics are served", extra={"url": health.url})
        os.umask(whole_files.UMASK)
        journal = Journal()
        agent = Parts(options, log_dirs, silent, journal, pulse, polls, ending)
        resources.callback(agent.end)
        pages.waits_for = lambda: [str(call.path) for call in agent.blocking.blocked]
        agent.start_background(resources)
        service, rights = agent.service(), Rights(log_dirs)
        _show_metrics(metrics, service, security, rights, agent)
        on_calls = pages if options.metrics_listen is None else None
        try:
            server = AgentServer(answers(service, metrics.rows.inc), options.listen, security, metrics, on_calls)
        except OSError as error:
            raise cannot_listen(options.listen, error) from error
        resources.callback(server.close, CLOSE_SECONDS)
        threading.Thread(target=_check_rights, args=(rights, ending.event, options.child), daemon=True, name="rights").start()
        log.info("agent listens", extra={"address": str(server.address), "journal": journal.id, "agent": options.name})
        if options.child:
            send_address(str(server.address))
        agent.run()
        stopped = {"agent": options.name, "seq": journal.end().seq, "published_bytes": journal.end().total}
        log.info("agent stops", extra={**stopped, "ran_seconds": round(time.monotonic() - began)})


def collect_rarely() -> None:
    """Make Python look for garbage less often: with its own numbers, a fifth of a poll of 1,000 logs that grow was spent on that."""
    gc.set_threshold(NEW_OBJECTS, 20, 20)


def raise_limit(logs: int = 0) -> int:
    """Raise the soft limit on open files to the hard one and return the new limit. Logs if ``logs`` need more, besides a reserve for
    everything else, or a large broker may.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < logs + RESERVED:
        log.error(
            "fewer files may be open than this host's logs need: some logs are not read; raise LimitNOFILE (ulimit -Hn)",
            extra={"limit": limit, "logs": logs, "reserve": RESERVED},
        )
    elif limit < FEW:
        log.warning(
            "few files may be open: raise LimitNOFILE (ulimit -Hn) above the number of partitions on this host", extra={"limit": limit}
        )
    return limit


def count_directories(log_dir: LogDir) -> int:
    """How many directories a log dir has, 0 if it cannot be listed now."""
    try:
        with Calling(log_dir.path), os.scandir(log_dir.path) as entries:
            return sum(entry.is_dir() for entry in entries)
    except OSError as error:  # the watcher reports it
        log.debug("log dir cannot be listed", extra={"log_dir": str(log_dir.path), "error": str(error)})
        return 0


def _show_metrics(metrics: AgentMetrics, service: Service, security: Security, rights: Rights, agent: Parts) -> None:
    """Show on the agent's own page what its parts do not count themselves."""
    journal, certificates, following = service.journal, security.certificates, agent.following
    brokers = ",".join(map(str, service.watcher.log_dirs.brokers))
    metrics.show(agent_metrics.BUILD, lambda: 1, streaming.__version__, service.name, brokers)
    metrics.show(agent_metrics.LOGS, lambda: len(service.watcher.tails()))
    metrics.show(agent_metrics.CAUGHT_UP, lambda: service.watcher.caught_up)
    metrics.show(agent_metrics.JOURNAL_SIZE, journal.size)
    metrics.show(agent_metrics.PUBLISHED_BYTES, lambda: journal.end().total)
    metrics.show(agent_metrics.PUBLISHED_EVENTS, lambda: journal.end().seq)
    metrics.show(agent_metrics.UNREADABLE_FILES, lambda: rights.count)
    metrics.show(agent_metrics.DESCRIPTOR_SHORTAGES, lambda: shortage.count)
    metrics.show(agent_metrics.COORDINATOR_LOG_ERRORS, lambda: following.errors)
    ladders = agent.ladders
    metrics.show(agent_metrics.LADDER_UNFILLED, lambda: None if ladders is None else ladders.unfilled_bytes)
    metrics.show(agent_metrics.LADDER_SIZE, lambda: None if ladders is None else ladders.nbytes)
    for how in Following:
        metrics.show(agent_metrics.COORDINATOR_LOGS, partial(lambda each: following.counts()[each], how), how)
    for doubt in Doubt:
        metrics.show(agent_metrics.AGENT_DOUBTS, partial(lambda each: service.doubts()[each], doubt), service.name, doubt)
    metrics.show(agent_metrics.SECURITY_FAILURES, lambda: security.failures)
    metrics.show(agent_metrics.CERTIFICATE_END, lambda: None if certificates is None else certificates.get().pair.ends_at)


def _check_rights(rights: Rights, stop: threading.Event, child: bool) -> None:
    if os.geteuid() == 0 and not child:  # for a child, its job decides about running as root
        log.warning("the agent runs as root and needs no such rights: give it a user of its own that may read the log dirs")
    while True:
        rights.check()
        if stop.wait(RIGHTS_EVERY_SECONDS):
            return
