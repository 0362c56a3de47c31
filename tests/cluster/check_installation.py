"""The chart on a real API server: installed, upgraded, uninstalled, with its rights and under Pod Security (`make cluster-check`).

Pods are pretended: that containers start, that probes answer and that policies of the network hold is not seen here.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click import Context
from pyspark.find_spark_home import _find_spark_home

from helm.entrypoint import SEGTAIL, command
from streaming.kafka.formats.properties import parse_properties
from streaming.terminal.cli.app import segtail
from tests.builders import batch, log_dir, partition
from tests.cluster.control_plane import NODES, Cluster, cluster
from tests.cluster.executors import container, driver
from tests.cluster.letting_go import agent_of, attach, disk, end, leave_attaching_to_the_controller
from tests.disk.machine import holder
from tests.helm.charts import CASES, CHART, ROOT, SHARE, Manifest
from tests.image.containers import require_image
from tests.processes import until

SECONDS = "600s"
EXAMPLES = ROOT / "helm" / "examples"
AGENTS = "app.kubernetes.io/component=agent"
EXECUTOR = "app.kubernetes.io/component=executor"
STRIMZI = CHART / "ci" / "strimzi-values.yaml"
BROKERS = ("my-cluster-broker-0", "my-cluster-broker-1")
EXECUTORS: Manifest = {
    "agents": {"enabled": False},
    "tls": {"source": "secrets", "jobSecret": "segtail-job"},
    "job": {
        "agents": ["dns:///agents.example.com:8815"],
        "executors": {
            "enabled": True,
            "instances": 2,
            "memory": "512m",
            "memoryOverhead": "512m",
            "podDisruptionBudget": {"enabled": True},
        },
        "checkpoint": {"accessMode": "ReadWriteMany"},
    },
}


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that knows the custom resources and has volumes for every claim."""
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        for definition in sorted((SHARE / "crds").glob("*.yaml")):
            made.kubectl("create", "--filename", definition)
        made.kubectl("wait", "crd", "--all", "--for=condition=Established", f"--timeout={SECONDS}")
        made.apply(*(volume(number) for number in range(40)))
        yield made


@pytest.fixture
def namespace(kubernetes: Cluster, request: pytest.FixtureRequest) -> str:
    """A namespace of its own for a test, in which Pod Security is enforced at the level that the test names."""
    level = request.param if hasattr(request, "param") else "restricted"
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    kubernetes.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}}
    )
    until("the namespace has its account", lambda: kubernetes.get("serviceaccount", name))
    return str(name)


def volume(number: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {"capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"], "hostPath": {"path": "/nowhere"}},
    }


def brokers(kubernetes: Cluster, namespace: str) -> None:
    """Two brokers on two nodes with two volumes each, as Strimzi makes them."""
    for pod, node in zip(BROKERS, NODES, strict=True):
        claims = [f"data-{number}-{pod}" for number in (0, 1)]
        kubernetes.apply(*(claim(namespace, name) for name in claims))
        kubernetes.apply(broker(namespace, pod, node, claims))
    kubernetes.kubectl("wait", "pod", "--all", "-n", namespace, "--for=condition=Ready", f"--timeout={SECONDS}")


def broker(namespace: str, pod: str, node: str, claims: list[str]) -> Manifest:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    volumes = [(f"data-{number}", name) for number, name in enumerate(claims)]
    mounts = [{"name": volume, "mountPath": f"/var/lib/kafka/{volume}"} for volume, _ in volumes]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod, "namespace": namespace, "labels": {"strimzi.io/pod-name": pod}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "kafka", "image": "kafka", "securityContext": context, "volumeMounts": mounts}],
            "volumes": [{"name": volume, "persistentVolumeClaim": {"claimName": name}} for volume, name in volumes],
        },
    }


def claim(namespace: str, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def install(kubernetes: Cluster, namespace: str, *arguments: str | Path, values: Manifest | None = None) -> None:
    kubernetes.helm(
        *("upgrade", "--install", "rel", CHART, "-n", namespace, "--wait", f"--timeout={SECONDS}", "--values", "-", *arguments),
        given=yaml.safe_dump(values or {}),
    )


def ready(kubernetes: Cluster, namespace: str, selector: str = "") -> list[Manifest]:
    found = kubernetes.get("pods", namespace, selector)
    states = [{each["type"]: each["status"] for each in pod["status"].get("conditions", [])} for pod in found]
    return found if all(state.get("Ready") == "True" for state in states) else []


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem.removesuffix("-values"))
def test_api_server_takes_every_case(kubernetes: Cluster, values: Path) -> None:
    rendered = kubernetes.helm("template", "rel", CHART, "--values", values)

    kubernetes.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", "-", given=rendered)


def test_agents_run_beside_their_brokers_under_pod_security(kubernetes: Cluster, namespace: str) -> None:
    brokers(kubernetes, namespace)

    install(kubernetes, namespace, "--values", STRIMZI)

    found = until("the agents' pods run", lambda: two(ready(kubernetes, namespace, AGENTS)))
    agents = {pod["metadata"]["labels"]["segtail/broker"]: pod["spec"]["nodeName"] for pod in found}
    assert agents == dict(zip(BROKERS, NODES, strict=True))
    (job,) = ready(kubernetes, namespace, "app.kubernetes.io/component=job")
    assert job["metadata"]["name"] == "rel-segtail-job-0"
    assert kubernetes.get("pdb", namespace) == [], "nothing keeps an agent from being evicted"


def test_a_broker_gets_its_volume_on_another_node_from_the_agent_that_has_it(kubernetes: Cluster, namespace: str, tmp_path: Path) -> None:
    """The controllers of CronJobs and of attachments, an agent and a lock are real. That the volume moves is the driver's part.

    Then its claim is deleted: it goes with the broker's pod and the agent's, which keeps nothing when it has ended.
    """
    pod, data, volume = BROKERS[0], f"data-0-{BROKERS[0]}", f"{namespace}-data-0-{BROKERS[0]}"
    leave_attaching_to_the_controller(kubernetes)
    kubernetes.apply(*disk(namespace, data))
    kubernetes.apply(broker(namespace, pod, NODES[0], [data]))
    until("the volume is attached", lambda: attach(kubernetes, volume) == [NODES[0]])
    values = {
        "agents": {"mode": "volumes", "volumes": {"brokers": [{"pod": pod, "claims": [{"name": data}]}]}},
        "tls": {"source": "secrets", "agentSecret": "segtail-agent", "jobSecret": "segtail-job"},
    }
    install(kubernetes, namespace, values=values)
    (beside,) = until("the agent's pod runs", lambda: ready(kubernetes, namespace, AGENTS))
    assert beside["spec"]["nodeName"] == NODES[0]
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    made.release()
    with agent_of(beside, made.path, tmp_path) as agent, holder(made.path / ".lock") as process:
        until("the agent runs", lambda: "agent listens" in agent.stated, saw=lambda: agent.stated)

        process.kill()
        kubernetes.kubectl("delete", "pod", pod, "-n", namespace)
        kubernetes.apply(broker(namespace, pod, NODES[1], [data]))

        (held,) = until("the broker is refused its volume", lambda: events(kubernetes, namespace, pod, "FailedAttachVolume"))
        assert "Multi-Attach error" in held
        assert attach(kubernetes, volume) == [NODES[0]]
        status = agent.wait()
    assert status == 0
    end(kubernetes, beside, status)

    until("the volume is attached where the broker is", lambda: attach(kubernetes, volume) == [NODES[1]])
    until("the broker has it", lambda: events(kubernetes, namespace, pod, "SuccessfulAttachVolume")[1:])
    (after,) = until("the next agent's pod runs", lambda: running(kubernetes, namespace, AGENTS))
    assert after["spec"]["nodeName"] == NODES[1]
    (last,) = kubernetes.get("jobs", namespace)

    kubernetes.kubectl("delete", "pvc", data, "-n", namespace, "--wait=false")
    kubernetes.kubectl("delete", "pod", pod, "-n", namespace)
    (kept,) = [each for each in kubernetes.get("pvc", namespace) if each["metadata"]["name"] == data]
    assert "deletionTimestamp" in kept["metadata"], "the agent's pod runs, and keeps it"
    end(kubernetes, after, 0)

    until("the claim is gone", lambda: kept["metadata"]["uid"] not in uids(kubernetes, namespace, "pvc"))
    ended = {each["metadata"]["uid"] for each in (beside, after, last)}
    until("pods and Jobs that have ended are gone", lambda: not ended & uids(kubernetes, namespace, "pods,jobs"))
    until("there is a next Job", lambda: kubernetes.get("jobs", namespace, AGENTS))


def test_an_agent_that_fails_leaves_nothing_and_is_made_anew(kubernetes: Cluster, namespace: str) -> None:
    brokers(kubernetes, namespace)
    install(kubernetes, namespace, "--values", STRIMZI)
    first, other = until("the agents' pods run", lambda: two(ready(kubernetes, namespace, AGENTS)))

    end(kubernetes, first, 2)

    until("it is gone", lambda: first["metadata"]["uid"] not in uids(kubernetes, namespace, "pods"))
    now = until("its successor runs", lambda: two(running(kubernetes, namespace, AGENTS)))
    assert other["metadata"]["uid"] in {each["metadata"]["uid"] for each in now}
    assert len(kubernetes.get("jobs", namespace)) == 2


def test_an_agent_is_put_into_strimzis_pods_at_admission(kubernetes: Cluster) -> None:
    """The example, as it is shipped. The pod keeps to Pod Security, the container has the broker's mounts, read-only, and no probes."""
    policy = EXAMPLES / "strimzi-sidecar.yaml"
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubernetes.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kafka", "labels": restricted}})
    until("the namespace has its account", lambda: kubernetes.get("serviceaccount", "kafka"))
    kubernetes.kubectl("apply", "--validate=strict", "--filename", policy)
    made = broker("kafka", "my-cluster-broker-7", NODES[0], ["data-0", "data-1"])
    made["metadata"]["labels"] |= {"strimzi.io/cluster": "my-cluster", "strimzi.io/broker-role": "true"}

    def admitted() -> list[Manifest]:
        done = kubernetes.run("kubectl", "create", "--dry-run=server", "--output=json", "--filename", "-", given=yaml.safe_dump(made))
        assert done.returncode == 0, done.stderr
        return [each for each in json.loads(done.stdout)["spec"]["containers"] if each["name"] == "segtail"]

    (agent,) = until("the policy is known to the API server", admitted)

    kubernetes.apply(made)
    (pod,) = kubernetes.get("pods", "kafka")
    assert [each["name"] for each in pod["spec"]["containers"]] == ["kafka", "segtail"]
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & agent.keys()
    assert {"memory"} <= agent["resources"]["limits"].keys()
    assert agent["args"][0] == "sidecar"
    assert "--name=my-cluster-broker-7" in agent["args"]
    assert "--log-dirs=/var/lib/kafka/data-0/kafka-log7,/var/lib/kafka/data-1/kafka-log7" in agent["args"]
    known = segtail.get_command(Context(segtail), "agent")
    assert known is not None
    assert {each.partition("=")[0] for each in agent["args"][1:]} <= {option for parameter in known.params for option in parameter.opts}
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in agent["volumeMounts"] if "serviceaccount" not in each["mountPath"]}
    writable = {path for path, only_read in mounts.items() if not only_read}
    assert writable == set(), "an agent writes nothing"
    (secret,) = [each["secret"] for each in pod["spec"]["volumes"] if each["name"] == "segtail-tls"]
    assert secret["optional"], "a broker starts without it"
    other = broker("kafka", "other-broker-0", NODES[0], ["data-0"])
    kubernetes.apply(other)
    (alone,) = [each for each in kubernetes.get("pods", "kafka") if each["metadata"]["name"] == "other-broker-0"]
    assert [each["name"] for each in alone["spec"]["containers"]] == ["kafka"], "of another cluster"
    kubernetes.kubectl("delete", "--filename", policy)


def test_a_look_into_a_brokers_pod_needs_no_installation(kubernetes: Cluster, namespace: str) -> None:
    """kubectl debug with the file that is shipped: the API server takes the container, with the pod's volumes, under Pod Security."""
    brokers(kubernetes, namespace)
    command = ["sh", "-c", "ulimit -v 1000000; exec segtail why --log-dirs /var/lib/kafka/data-0/kafka-log0"]

    kubernetes.kubectl(
        *("debug", BROKERS[0], "-n", namespace, "--image=localhost/segtail-look:0.1.0", "--container=look", "--profile=restricted"),
        *(f"--custom={EXAMPLES / 'debug-mount.yaml'}", "--", *command),
    )

    (pod,) = [each for each in kubernetes.get("pods", namespace) if each["metadata"]["name"] == BROKERS[0]]
    (look,) = pod["spec"]["ephemeralContainers"]
    assert look["command"] == command
    assert look["securityContext"]["runAsUser"] == 1001
    assert {"name": "data-0", "mountPath": "/var/lib/kafka/data-0", "readOnly": True} in look["volumeMounts"]
    assert [each["name"] for each in pod["spec"]["containers"]] == ["kafka"]


def uids(kubernetes: Cluster, namespace: str, kinds: str) -> set[str]:
    return {each["metadata"]["uid"] for each in kubernetes.get(kinds, namespace)}


def running(kubernetes: Cluster, namespace: str, selector: str) -> list[Manifest]:
    return [pod for pod in kubernetes.get("pods", namespace, selector) if pod["status"]["phase"] == "Running"]


def events(kubernetes: Cluster, namespace: str, pod: str, reason: str) -> list[str]:
    """What was reported of a pod of that name, in messages; one that came again counts again."""
    found = [each for each in kubernetes.get("events", namespace) if each["involvedObject"]["name"] == pod and each["reason"] == reason]
    return [each["message"] for each in found for _ in range(each.get("count") or 1)]


def test_an_upgrade_replaces_pods_and_an_uninstall_leaves_the_checkpoint(kubernetes: Cluster, namespace: str) -> None:
    brokers(kubernetes, namespace)
    install(kubernetes, namespace, "--values", STRIMZI)
    until("the agents' pods run", lambda: two(ready(kubernetes, namespace, AGENTS)))
    before = {pod["metadata"]["uid"] for pod in ready(kubernetes, namespace, "app.kubernetes.io/instance=rel")}
    (checkpoint,) = kubernetes.get("pvc", namespace, "app.kubernetes.io/component=job")

    install(kubernetes, namespace, "--values", STRIMZI, values={"config": {"read_rate": "100MiB"}})

    def replaced() -> set[str]:
        now = {pod["metadata"]["uid"] for pod in ready(kubernetes, namespace, "app.kubernetes.io/instance=rel")}
        return now if len(now) == len(before) and not now & before else set()

    until("every pod is a new one", replaced)

    kubernetes.helm("uninstall", "rel", "-n", namespace, "--wait", f"--timeout={SECONDS}")

    until("the pods are gone", lambda: not kubernetes.get("pods", namespace, "app.kubernetes.io/instance=rel"))
    kinds = "deploy,ds,sts,cronjob,svc,cm,sa,role,rolebinding,netpol,pdb,podmonitor,prometheusrule,certificate,issuer"
    assert kubernetes.get(kinds, namespace, "app.kubernetes.io/instance=rel") == []
    (left,) = kubernetes.get("pvc", namespace, "app.kubernetes.io/component=job")
    assert left["metadata"]["uid"] == checkpoint["metadata"]["uid"]

    install(kubernetes, namespace, "--values", STRIMZI)

    (taken_up,) = kubernetes.get("pvc", namespace, "app.kubernetes.io/component=job")
    assert taken_up["metadata"]["uid"] == checkpoint["metadata"]["uid"]


@pytest.mark.parametrize("namespace", ["privileged"], indirect=True)
def test_a_daemon_set_runs_on_every_node_where_host_paths_are_allowed(kubernetes: Cluster, namespace: str) -> None:
    install(kubernetes, namespace)

    assert sorted(pod["spec"]["nodeName"] for pod in ready(kubernetes, namespace, AGENTS)) == sorted(NODES)
    done = kubernetes.run(
        "kubectl", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite", "--dry-run=server"
    )
    # what restricted would say of the pods that run here: of the agents' host paths, and of nothing else
    (complaint,) = [line for line in done.stderr.splitlines() if line.startswith("Warning: rel-")]
    assert complaint.startswith("Warning: rel-segtail-agent-")
    assert complaint.endswith(": restricted volume types")


def test_pod_security_refuses_host_paths_and_says_so(kubernetes: Cluster, namespace: str) -> None:
    kubernetes.helm("upgrade", "--install", "rel", CHART, "-n", namespace)

    def refusals() -> list[str]:
        events = kubernetes.get("events", namespace)
        return [
            event["message"] for event in events if event["reason"] == "FailedCreate" and event["involvedObject"]["kind"] == "DaemonSet"
        ]

    (refusal, *_) = until("the agents are refused", refusals)
    assert 'violates PodSecurity "restricted:latest": restricted volume types' in refusal
    assert 'uses restricted volume type "hostPath"' in refusal
    assert kubernetes.get("pods", namespace, AGENTS) == []


def test_a_job_that_never_became_ready_is_replaced(kubernetes: Cluster, namespace: str) -> None:
    """As one whose image cannot be pulled: here no node takes it, until the next revision asks for none."""
    values: Manifest = EXECUTORS | {"job": {"agents": ["dns:///agents.example.com:8815"], "nodeSelector": {"there": "is-none"}}}
    kubernetes.helm("install", "rel", CHART, "-n", namespace, "--values", "-", given=yaml.safe_dump(values))
    until("it waits", lambda: kubernetes.get("pods", namespace, "app.kubernetes.io/component=job"))
    values["job"]["nodeSelector"] = {}
    install(kubernetes, namespace, values=values)

    assert len(running(kubernetes, namespace, "app.kubernetes.io/component=job")) == 1


def test_the_job_may_manage_its_executors_and_nothing_else(kubernetes: Cluster, namespace: str) -> None:
    install(kubernetes, namespace, values=EXECUTORS)

    def may(account: str, verb: str, what: str, where: str) -> bool:
        who = f"--as=system:serviceaccount:{namespace}:{account}"
        kind, _, part = what.partition("/")
        return kubernetes.run("kubectl", "auth", "can-i", verb, kind, f"--subresource={part}", "-n", where, who).stdout.strip() == "yes"

    wanted = {("pods", verb) for verb in ("create", "get", "list", "watch", "delete", "deletecollection")}
    assert {(what, verb) for what, verb in wanted if not may("rel-segtail-job", verb, what, namespace)} == set()
    refused = {
        ("secrets", "get"),
        ("secrets", "list"),
        ("pods/exec", "create"),
        ("pods/log", "get"),
        ("roles", "create"),
        ("nodes", "list"),
        ("pods", "patch"),
    } | {(what, verb) for what in ("configmaps", "services", "persistentvolumeclaims") for verb in ("create", "list", "deletecollection")}
    assert {(what, verb) for what, verb in refused if may("rel-segtail-job", verb, what, namespace)} == set()
    assert {(what, verb) for what, verb in wanted if may("rel-segtail-job", verb, what, "default")} == set()
    assert {(what, verb) for what, verb in wanted | refused if may("rel-segtail", verb, what, namespace)} == set()


def test_spark_makes_its_executors_with_these_rights_and_removes_them(
    kubernetes: Cluster, namespace: str, tmp_path: Path, java_home: Path
) -> None:
    """Spark's own scheduler, as the job's account, under Pod Security: its executors are accepted, belong to the job's pod, go with it."""
    install(kubernetes, namespace, values=EXECUTORS)

    with driver(kubernetes, namespace, tmp_path) as spark:
        executors = until("two executors run", lambda: two(ready(kubernetes, namespace, EXECUTOR)))
        (job,) = kubernetes.get("pods", namespace, "app.kubernetes.io/component=job")
        for pod in executors:
            (container,) = pod["spec"]["containers"]
            assert container["image"] == job["spec"]["containers"][0]["image"]
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert pod["spec"]["serviceAccountName"] == "rel-segtail"
            assert [owner["uid"] for owner in pod["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
            assert {"/tmp", "/etc/segtail/tls", "/var/lib/segtail"} <= {mount["mountPath"] for mount in container["volumeMounts"]}

        until("one executor may be evicted", lambda: allowed(kubernetes, namespace) == {"rel-segtail-executor": 1})

    assert "orbidden" not in spark.log.read_text()
    until("the executors are gone", lambda: not kubernetes.get("pods", namespace, EXECUTOR))
    assert [each["metadata"]["name"] for each in kubernetes.get("configmap", namespace) if "spark-exec" in each["metadata"]["name"]] == []


def test_the_image_is_an_executor_of_that_spark(kubernetes: Cluster, namespace: str, tmp_path: Path, java_home: Path) -> None:
    """The container of an executor's pod, with its command and variables: it finds the driver and works for it."""
    require_image()
    install(kubernetes, namespace, values=EXECUTORS)

    with driver(kubernetes, namespace, tmp_path) as spark:
        first, _ = until("two executors run", lambda: two(ready(kubernetes, namespace, EXECUTOR)))
        with container(kubernetes, first, tmp_path):
            assert spark.sum_of_squares(1000) == sum(number * number for number in range(1000))


def test_the_image_understands_what_spark_submit_hands_to_a_driver(
    kubernetes: Cluster, namespace: str, tmp_path: Path, java_home: Path
) -> None:
    """Cluster mode, as operators use it: what the driver's pod is reported becomes segtail with Spark's options."""
    home = Path(_find_spark_home())
    options = {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.container.image": "segtail",
        "spark.kubernetes.authenticate.caCertFile": str(kubernetes.ca),
        "spark.kubernetes.authenticate.submission.caCertFile": str(kubernetes.ca),
        "spark.kubernetes.authenticate.submission.oauthToken": "admin-token",
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.executor.instances": "3",
        "spark.kubernetes.driver.podTemplateFile": str(tmp_path / "pod.yaml"),
    }
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    template = {"spec": {"securityContext": pod, "containers": [{"name": "driver", "securityContext": context}]}}
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **template}))
    words = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    submit: list[str | Path] = [home / "bin" / "spark-submit", "--master", f"k8s://{kubernetes.server}", "--deploy-mode", "cluster", *words]
    done = subprocess.run([*submit, "local:///opt/segtail/bin/segtail.py", "run", "--config=/a b"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    (driver_pod,) = kubernetes.get("pods", namespace, "spark-role=driver")
    (spec,) = driver_pod["spec"]["containers"]
    (config,) = [each for each in kubernetes.get("configmap", namespace) if "spark.properties" in each.get("data", {})]
    (tmp_path / "spark.properties").write_text(config["data"]["spark.properties"])
    arguments = [str(tmp_path / "spark.properties") if word.endswith("/spark.properties") else word for word in spec["args"]]
    environment = {variable["name"]: variable.get("value", "10.0.0.8") for variable in spec["env"]}

    stated = command(arguments, environment)

    assert stated[:3] == [SEGTAIL, "run", "--config=/a b"]
    assert stated[3:5] == ["--master", f"k8s://{kubernetes.server}"]
    assert stated[5:7] == ["--spark-properties", str(tmp_path / "spark.properties")]
    assert "spark.driver.bindAddress=10.0.0.8" in stated[8::2]
    written = dict(parse_properties((tmp_path / "spark.properties").read_bytes()))
    assert (written["spark.executor.instances"], written["spark.kubernetes.namespace"]) == ("3", namespace)


def allowed(kubernetes: Cluster, namespace: str) -> dict[str, int]:
    """How many pods may be evicted now, by budget; a budget that cannot be worked out allows none."""
    return {each["metadata"]["name"]: each.get("status", {}).get("disruptionsAllowed", 0) for each in kubernetes.get("pdb", namespace)}


def two(pods: list[Manifest]) -> list[Manifest]:
    return pods if len(pods) == 2 else []
