"""Values that are wrong or do not go together are refused, with a message that names them."""

import pytest

from helm.generate import AGENT_OPTIONS, OWN_OPTIONS
from streaming.common.settings import OPTIONS, Settings
from tests.helm.charts import render, template
from tests.helm.charts import settings as settings_of
from tests.tables import each_row

pytestmark = pytest.mark.programs

BROKER = {"pod": "kafka-0", "claims": [{"name": "data"}]}
SECRETS = {"source": "secrets", "agentSecret": "a", "jobSecret": "b"}


def of_alert(alert: str, **change: object) -> dict[str, object]:
    return {"monitoring": {"prometheusRule": {"overrides": {alert: change}}}}


@each_row(
    ("values", "message"),
    [
        ({"agnets": {}}, "additional properties 'agnets' not allowed"),
        ({"agents": {"mode": "sidecar"}}, "at '/agents/mode': value must be one of 'hostPath', 'volumes'"),
        ({"agents": {"hostPath": {"logDirs": []}}}, "at '/agents/hostPath/logDirs': minItems: got 0, want 1"),
        ({"agents": {"hostPath": {"logDirs": ["data"]}}}, "at '/agents/hostPath/logDirs/0': 'data' does not match pattern"),
        ({"agents": {"port": "8815"}}, "at '/agents/port': got string, want integer"),
        ({"agents": {"port": 80}}, "at '/agents/port': minimum: got 80, want 1,024"),
        ({"agents": {"volumes": {"brokers": [{"pod": "kafka-0"}]}}}, "at '/agents/volumes/brokers/0': missing property 'claims'"),
        (
            {"agents": {"resources": {"limits": {"memory": "512M B"}}}},
            "at '/agents/resources/limits/memory': '512M B' does not match pattern",
        ),
        ({"agents": {"livenessProbe": {"path": "/"}}}, "at '/agents/livenessProbe': additional properties 'path' not allowed"),
        ({"agents": {"nodeSelector": {"kafka": True}}}, "at '/agents/nodeSelector/kafka': got boolean, want string"),
        ({"job": {"agents": ["broker-1:8815"]}}, "at '/job/agents/0': 'broker-1:8815' does not match pattern"),
        ({"job": {"agents": ["http://broker-1:8815"]}}, "at '/job/agents/0': 'http://broker-1:8815' does not match pattern"),
        ({"job": {"master": "k8s://https://host"}}, "at '/job/master': 'k8s://https://host' does not match pattern"),
        ({"job": {"spark": {"executor.memory": "1g"}}}, "'executor.memory' does not match pattern '^spark"),
        ({"job": {"spark": {"spark.x": ["1"]}}}, "at '/job/spark/spark.x': got array, want boolean or number or string"),
        ({"job": {"executors": {"instances": 0}}}, "at '/job/executors/instances': minimum: got 0, want 1"),
        ({"job": {"executors": {"memory": "1Gi"}}}, "at '/job/executors/memory': '1Gi' does not match pattern"),
        ({"job": {"checkpoint": {"uri": "/mnt/checkpoint"}}}, "at '/job/checkpoint/uri': '/mnt/checkpoint' does not match pattern"),
        ({"job": {"checkpoint": {"accessMode": "RWX"}}}, "at '/job/checkpoint/accessMode': value must be one of"),
        ({"job": {"web": {"scheme": "https"}}}, "at '/job/web/scheme': value must be one of 'HTTP', 'HTTPS'"),
        ({"job": {"extraEnv": [{"value": "x"}]}}, "at '/job/extraEnv/0': missing property 'name'"),
        ({"tls": {"source": "none"}}, "at '/tls/source': value must be one of 'certManager', 'secrets'"),
        ({"tls": {"certManager": {"duration": "90d"}}}, "at '/tls/certManager/duration': '90d' does not match pattern"),
        ({"token": {"secretName": "A_B"}}, "at '/token/secretName': 'A_B' does not match pattern"),
        ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy': value must be one of"),
        ({"image": {"digest": "latest"}}, "at '/image/digest': 'latest' does not match pattern"),
        (
            {"monitoring": {"monitor": "podMonitor"}},
            "at '/monitoring/monitor': value must be one of 'none', 'PodMonitor', 'ServiceMonitor'",
        ),
        (
            of_alert("GroupStoped", enabled=False),
            "at '/monitoring/prometheusRule/overrides': additional properties 'GroupStoped' not allowed",
        ),
        (of_alert("GroupStopped", enabled="no"), "overrides/GroupStopped/enabled': got string, want boolean"),
        (of_alert("GroupStopped", severity="page"), "overrides/GroupStopped/severity': value must be one of 'critical', 'warning', 'info'"),
        (
            {"monitoring": {"urls": {"page": "segtail.example.org"}}},
            "at '/monitoring/urls/page': 'segtail.example.org' does not match pattern",
        ),
        ({"job": {"publicUrl": "orders.example.org"}}, "at '/job/publicUrl': 'orders.example.org' does not match pattern"),
        ({"monitoring": {"urls": {"runbooks": "https://a/{{ b }}"}}}, "at '/monitoring/urls/runbooks'"),
        ({"config": {"public_url": "http://a"}}, "at '/config': additional properties 'public_url' not allowed"),
        ({"networkPolicy": {"metricsFrom": [7]}}, "at '/networkPolicy/metricsFrom/0': got number, want object"),
        ({"config": {"triger": "1s"}}, "at '/config': additional properties 'triger' not allowed"),
        ({"config": {"trigger": "1 second"}}, "at '/config/trigger': '1 second' does not match pattern"),
        ({"config": {"replicas": "some"}}, "at '/config/replicas': value must be one of 'leaders', 'all'"),
        ({"config": {"state_shards": 5000}}, "at '/config/state_shards': maximum: got 5,000, want 4,096"),
        ({"config": {"max_bytes_per_batch": "1GB"}}, "at '/config/max_bytes_per_batch': '1GB' does not match pattern"),
        ({"config": {"free_ratio": 2}}, "at '/config/free_ratio': maximum: got 2, want 1"),
        ({"config": {"export.groups": ["trhoughput"]}}, "at '/config/export.groups/0': value must be one of 'throughput'"),
        ({"config": {"export": {"topic": "a"}}}, "at '/config/export': additional properties 'topic' not allowed"),
        ({"config": {"topic_config": {"orders": 7}}}, "at '/config/topic_config/orders': got number, want object"),
        ({"config": {"server_properties": ["server.properties"]}}, "'server.properties' does not match pattern '^/'"),
        ({"config": {"assume_replicated": "yes"}}, "at '/config/assume_replicated': got string, want boolean"),
        ({"config": {"listen": "0.0.0.0:9712"}}, "at '/config': additional properties 'listen' not allowed"),
    ],
)
def test_the_schema_refuses(values: dict[str, object], message: str) -> None:
    done = template(values)

    assert done.returncode != 0
    assert message in done.stderr


@each_row(
    ("values", "message"),
    [
        ({"agents": {"enabled": False}, "job": {"enabled": False}}, "nothing to install"),
        ({"agents": {"enabled": False}}, "the job has no agents: set agents.enabled, or name them in job.agents"),
        ({"agents": {"mode": "volumes"}}, "name the brokers and their claims in agents.volumes.brokers"),
        ({"agents": {"volumes": {"brokers": [BROKER]}}}, "agents.volumes.brokers is for agents.mode volumes"),
        ({"agents": {"mode": "volumes", "volumes": {"brokers": [BROKER, BROKER]}}}, "agents.volumes.brokers has the pod kafka-0 twice"),
        ({"agents": {"metricsPort": 8815}}, "agents.port and agents.metricsPort are the same"),
        ({"tls": {**SECRETS, "agentSecret": ""}}, "name the agents' Secret in tls.agentSecret"),
        ({"tls": {**SECRETS, "jobSecret": ""}}, "name the job's Secret in tls.jobSecret"),
        ({"tls": {"jobSecret": "mine"}}, "are for tls.source secrets, and tls.source is certManager"),
        (
            {"job": {"executors": {"enabled": True}}},
            "set job.checkpoint.uri to a Hadoop file system, or job.checkpoint.accessMode to ReadWriteMany",
        ),
        (
            {"job": {"executors": {"enabled": True}, "checkpoint": {"uri": "s3a://b/c"}, "spark": {"spark.kubernetes.namespace": "x"}}},
            "job.spark.spark.kubernetes.namespace is set by the chart",
        ),
        (
            {
                "agents": {"mode": "volumes", "volumes": {"brokers": [BROKER]}},
                "job": {"executors": {"enabled": True}, "checkpoint": {"uri": "s3a://b/c"}},
            },
            "could delete every pod of this namespace, the brokers' too",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(values: dict[str, object], message: str) -> None:
    done = template(values)

    assert done.returncode != 0
    assert message in done.stderr


def test_every_option_of_the_program_is_accepted_and_handed_on_as_it_is() -> None:
    settings = Settings()
    config = {name: option.form.show(getattr(settings, option.attribute)) for name, option in OPTIONS.items() if name not in OWN_OPTIONS}

    manifests = render({"config": config})

    assert settings_of(manifests, "agent") == {name: value for name, value in config.items() if name in AGENT_OPTIONS}
    job = settings_of(manifests, "job")
    assert {name: job[name] for name in config} == config
    assert set(job) - set(config) <= OWN_OPTIONS
