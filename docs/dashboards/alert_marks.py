"""Alerts as marks in the charts of a dashboard: when which alert of segtail fired, and about what."""

from typing import Any

from docs.dashboards.panels import DATASOURCE

_SEVERITIES = (("Critical alerts", "critical", "red"), ("Warnings", "warning", "orange"))


def alert_marks() -> list[dict[str, Any]]:
    """The annotations of every dashboard, as Grafana's JSON has those of a Prometheus: its library knows no titles and no tags of them.

    Alerts are those of jobs that are a segtail's, also of one that is down. Watchdog always fires, and info is for a check now and then.
    """
    return [
        {
            "datasource": {"type": DATASOURCE.type_val, "uid": DATASOURCE.uid},
            "enable": True,
            "expr": f'ALERTS{{alertstate="firing",severity="{severity}"}} and on (job) last_over_time(segtail_build_info[1d])',
            "iconColor": color,
            "name": name,
            "step": "60s",
            "tagKeys": "severity,job,broker,topic,partition,group",
            "titleFormat": "{{alertname}}",
        }
        for name, severity, color in _SEVERITIES
    ]
