"""The chart as a whole: what the tools of the trade say of it, and that what was copied into it is current."""

import difflib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click import Context

from helm.generate import AGENT_OPTIONS, OWN_OPTIONS
from streaming.common.settings import OPTIONS
from streaming.terminal.cli.app import segtail
from streaming.terminal.cli.options import with_settings
from streaming.terminal.configuration import load
from tests.helm.charts import CASES, CHART, RELEASE, ROOT, Manifest, named, pods, render, run, settings, template
from tests.helm.schemas import locations
from tests.tools import require_tool

pytestmark = pytest.mark.programs

EVERY_CASE = pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem.removesuffix("-values"))


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    require_tool("kubeconform")
    return locations(tmp_path_factory.mktemp("schemas"))


def conform(schemas: list[str], manifests: str) -> subprocess.CompletedProcess[str]:
    return run("kubeconform", "-strict", "-summary", *schemas, "-", given=manifests)


@EVERY_CASE
def test_helm_lints_it(values: Path) -> None:
    done = run("helm", "lint", "--strict", CHART, "--values", values)

    assert done.returncode == 0, done.stdout + done.stderr


@EVERY_CASE
def test_everything_it_makes_is_what_the_api_knows(values: Path, schemas: list[str]) -> None:
    done = conform(schemas, template({}, values).stdout)

    assert done.returncode == 0, done.stdout
    assert "Skipped: 0" in done.stdout


def test_the_example_of_a_scaler_is_one_that_keda_knows(schemas: list[str]) -> None:
    example = (ROOT / "conf" / "keda.yaml").read_text()
    done = conform(schemas, example)
    assert done.returncode == 0, done.stdout
    assert "Skipped: 0" in done.stdout
    assert conform(schemas, example.replace("scaleTargetRef", "scaleTarget")).returncode != 0


@EVERY_CASE
def test_the_executors_pods_too(values: Path, schemas: list[str]) -> None:
    for manifest in render({}, values):
        executor = manifest.get("data", {}).get("executor.yaml")
        if executor:
            # metadata.name is Spark's to give
            done = conform(schemas, executor)
            assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("DaemonSet", ("spec", "template", "spec")),
        ("PodMonitor", ("spec",)),
        ("Certificate", ("spec", "issuerRef")),
        ("NetworkPolicy", ("spec",)),
    ],
)
def test_a_slip_would_be_noticed(kind: str, path: tuple[str, ...], schemas: list[str]) -> None:
    manifests = render({}, CHART / "ci" / "executors-values.yaml")
    place = next(each for each in manifests if each["kind"] == kind)
    for key in path:
        place = place[key]
    place["slip"] = "of the pen"

    assert conform(schemas, yaml.safe_dump_all(manifests)).returncode == 1


def test_its_unit_tests_pass() -> None:
    done = run("helm-unittest", CHART)

    assert done.returncode == 0, done.stdout


def test_what_is_copied_into_it_is_current(tmp_path: Path) -> None:
    made_new = tmp_path / "chart"
    subprocess.run([sys.executable, ROOT / "helm" / "generate.py", made_new], check=True, cwd=ROOT)
    for name in ("values.schema.json", "Chart.yaml"):
        ours, new = (CHART / name).read_text(), (made_new / name).read_text()
        assert ours == new, "make chart\n" + "".join(difflib.unified_diff(ours.splitlines(True), new.splitlines(True), name, name))
    assert contents(CHART / "files") == contents(made_new / "files"), "make chart"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_value_is_explained_and_has_a_rule() -> None:
    """A comment is before it, or before what it is in; the schema must know each, down to where users write what they like."""
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    schema = yaml.safe_load((ROOT / "helm" / "values.schema.yaml").read_text())

    assert unknown(values, schema, schema) == []
    assert unexplained(text) == []
    assert unexplained(re.sub("# -- Names of the Secrets.*", "", text)) == ["image.pullSecrets"]


def unexplained(text: str) -> list[str]:
    """The values in a file of values that have no comment."""
    found, path, told = [], list[tuple[int, str, bool]](), False
    for line in text.splitlines():
        if key := re.match(r"( *)(\w+): *(.*)", line):
            path = [*(each for each in path if each[0] < len(key[1])), (len(key[1]), key[2], told)]
            if key[3] and not any(explained for _, _, explained in path):
                found.append(".".join(name for _, name, _ in path))
        told = line.strip().startswith("# --") or (told and line.strip().startswith("#"))
    return found


def unknown(values: Manifest, schema: Manifest, root: Manifest, at: str = "") -> list[str]:
    if "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rpartition("/")[2]]
    if "properties" not in schema:
        return []
    found = [] if schema["additionalProperties"] is False else [f"{at} takes anything"]
    for key, value in values.items():
        if key not in schema["properties"]:
            found.append(f"{at}.{key}")
        elif isinstance(value, dict):
            found += unknown(value, schema["properties"][key], root, f"{at}.{key}")
    return found


def test_nothing_depends_on_what_the_cluster_happens_to_have() -> None:
    """The same values give the same manifests, with or without a cluster at hand."""
    for path in (CHART / "templates").iterdir():
        assert "Capabilities" not in path.read_text(), path
        assert "lookup " not in path.read_text(), path


@EVERY_CASE
def test_every_container_is_unprivileged_and_cannot_write_its_image(values: Path) -> None:
    for component, pod in pods(render({}, values)):
        assert pod["securityContext"]["runAsNonRoot"], component
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, component
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, component


@EVERY_CASE
def test_no_agent_can_write_what_is_kafkas(values: Path) -> None:
    for component, pod in pods(render({}, values)):
        if component == "agent":
            (container,) = pod["containers"]
            kafka = [mount for mount in container["volumeMounts"] if mount["name"].startswith("kafka-")]
            assert kafka
            assert all(mount["readOnly"] for mount in kafka)
            assert all(mount.get("readOnly") for mount in container["volumeMounts"]), "an agent writes nothing"
            for volume in pod["volumes"]:
                # so that kubelet gives nothing of Kafka's to the pod's group either
                assert volume.get("persistentVolumeClaim", {"readOnly": True})["readOnly"]


def test_a_sidecars_container_cannot_harm_its_pod() -> None:
    """The example for operators and charts that take containers by values."""
    found = yaml.safe_load((ROOT / "helm" / "examples" / "sidecar-container.yaml").read_text())
    (container,) = found["containers"]
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & container.keys()
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"] == container["resources"]["requests"], "a Guaranteed pod stays so"
    word, *arguments = container["args"]
    agent = segtail.get_command(Context(segtail), "agent")
    assert word == "sidecar"
    assert agent is not None
    assert {each.partition("=")[0] for each in arguments} <= {option for parameter in agent.params for option in parameter.opts}
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert [name for name, only_read in mounts.items() if not only_read] == []
    volumes = {volume["name"]: volume for volume in found["volumes"]}
    assert mounts.keys() - volumes.keys() == {"data"}, "that is the broker's"
    assert volumes["segtail-tls"]["secret"]["optional"]
    assert [volume for volume in volumes.values() if "emptyDir" in volume] == [], "beyond its room the broker's pod is evicted"


def test_strimzis_sidecar_has_the_bounds_of_the_other_and_closes_no_port_of_a_broker() -> None:
    """Its container is an expression: `make cluster-check` has an API server read it."""
    strimzi, other = ((ROOT / "helm" / "examples" / name).read_text() for name in ("strimzi-sidecar.yaml", "sidecar-container.yaml"))
    kinds = {each["kind"] for each in yaml.safe_load_all(strimzi)}
    assert kinds == {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "Service"}, (
        "a NetworkPolicy would be the brokers' only one"
    )
    (container,) = yaml.safe_load(other)["containers"]
    for kind, bounds in container["resources"].items():
        assert f'{kind}: {{"cpu": "{bounds["cpu"]}", "memory": "{bounds["memory"]}"}}' in strimzi
    assert "emptyDir" not in strimzi


def test_what_sidecars_need_besides_fits_them_and_is_as_the_chart_makes_it(schemas: list[str]) -> None:
    folder = ROOT / "helm" / "examples"
    text = (folder / "sidecar-certificate.yaml").read_text()
    done = conform(schemas, text)
    assert (done.returncode, "Skipped: 0" in done.stdout) == (0, True), done.stdout
    certificate, monitor = yaml.safe_load_all(text)
    policy, binding, service = yaml.safe_load_all((folder / "strimzi-sidecar.yaml").read_text())
    (container,) = yaml.safe_load((folder / "sidecar-container.yaml").read_text())["containers"]

    assert {each["metadata"]["name"] for each in (policy, binding)} == {"my-cluster-segtail-sidecar"}, "one for each cluster"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]} & {port["targetPort"] for port in service["spec"]["ports"]}
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert host in certificate["spec"]["dnsNames"]
    made = named(render(), "Certificate", f"{RELEASE}-segtail-agent")["spec"]
    own = {"dnsNames", "commonName", "secretName", "issuerRef"}
    assert {key: certificate["spec"][key] for key in made.keys() - own} == {key: made[key] for key in made.keys() - own}
    job = render({"agents": {"enabled": False}, "fullnameOverride": "segtail", "job": {"agents": [f"dns:///{host}:8815"]}})
    assert named(job, "Issuer", certificate["spec"]["issuerRef"]["name"])


def test_two_releases_beside_one_cluster_reach_and_trust_the_same_agents() -> None:
    def release(name: str) -> list[Manifest]:
        values = CHART / "ci" / f"pair-{name[-1:] if '-' in name else 'a'}-values.yaml"
        done = run("helm", "template", name, CHART, "--namespace", "kafka-watch", "--values", values)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    first, second = release("segtail"), release("segtail-b")
    issuer = named(second, "Certificate", "segtail-b-job")["spec"]["issuerRef"]
    assert issuer == named(first, "Certificate", "segtail-agent")["spec"]["issuerRef"]
    assert named(first, issuer["kind"], issuer["name"])
    assert not [each for each in second if each["kind"] in ("Issuer", "PrometheusRule")]

    (address,) = yaml.safe_load(named(second, "ConfigMap", "segtail-b-job")["data"]["segtail.yaml"])["agents"]
    assert [address] == yaml.safe_load(named(first, "ConfigMap", "segtail-job")["data"]["segtail.yaml"])["agents"]
    (job,) = [each["spec"]["template"]["metadata"]["labels"] for each in second if each["kind"] == "StatefulSet"]
    peers = named(first, "NetworkPolicy", "segtail-agent")["spec"]["ingress"][0]["from"]
    assert [peer for peer in peers if peer["podSelector"]["matchLabels"].items() <= job.items()]
    assert "Egress" not in named(second, "NetworkPolicy", "segtail-b-job")["spec"]["policyTypes"]

    relabelled = [
        named(release, "PodMonitor", name)["spec"]["podMetricsEndpoints"][0]["relabelings"]
        for release, name in ((first, "segtail-job"), (second, "segtail-b-job"))
    ]
    assert relabelled[0] == relabelled[1] != []


def test_agents_and_job_find_what_the_chart_gives_them() -> None:
    manifests = render({"token": {"secretName": "secret"}})

    reported = settings(manifests, "job")
    assert reported["agents"] == [f"dns:///{RELEASE}-segtail-agents.kafka.svc:8815"]
    (agent,) = [pod for component, pod in pods(manifests) if component == "agent"]
    (job,) = [pod for component, pod in pods(manifests) if component == "job"]
    options = dict(argument.split("=", 1) for argument in agent["containers"][0]["args"][1:])
    for pod, files in (
        (agent, [options["--tls-cert"], options["--tls-key"], options["--tls-client-ca"], options["--token-file"], options["--config"]]),
        (job, [reported["agent_ca"], reported["agent_cert"], reported["agent_key"], reported["agent_token_file"]]),
    ):
        mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert {str(Path(file).parent) for file in files} <= mounts


@EVERY_CASE
def test_the_program_takes_what_the_chart_shows_it(values: Path, tmp_path: Path) -> None:
    """Each option of the command lines is one, each configuration is read without complaint."""
    manifests = render({"config": {"export": {"topics": "orders.*"}}}, values)
    for component, pod in pods(manifests):
        if component == "executor":
            continue
        (tmp_path / "segtail.yaml").write_text(yaml.safe_dump(settings(manifests, component)))
        read = load(tmp_path / "segtail.yaml", {}, {})
        assert component == "agent" or read.export_topics.pattern == "orders.*"
        assert component == "agent" or read.agents
        (name, *arguments) = pod["containers"][0]["args"]
        command = segtail.get_command(Context(segtail), name)
        assert command is not None
        taken = {option for parameter in command.params for option in parameter.opts}
        assert {argument.partition("=")[0] for argument in arguments} <= taken


@pytest.mark.parametrize("component", ["agent", "job"])
def test_changed_options_start_pods_anew_and_unchanged_ones_do_not(component: str) -> None:
    def checksum(values: Manifest) -> str:
        (found,) = [
            each["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            for each in render(values)
            if each["metadata"]["name"] == f"{RELEASE}-segtail-{component}" and "template" in each.get("spec", {})
        ]
        return str(found)

    assert checksum({}) == checksum({"monitoring": {"monitor": "PodMonitor"}}) != checksum({"config": {"read_rate": "100MiB"}})


def test_options_of_the_job_alone_start_no_agent_anew() -> None:
    broker = {"pod": "kafka-0", "claims": [{"name": "data"}]}
    values = {"agents": {"mode": "volumes", "volumes": {"brokers": [broker]}}}

    def cron_job(**config: object) -> Manifest:
        (found,) = [each for each in render(values | {"config": config}) if each["kind"] == "CronJob"]
        return found

    assert cron_job() == cron_job(trigger="5s", export={"topics": "orders.*"}, group_late_limit=5)
    assert cron_job() != cron_job(scrub_rate="1MiB")


def test_an_agent_gets_every_option_that_it_reads() -> None:
    """What the command reads of the settings, and what is read before any command begins."""
    read = set(re.findall(r"\bsettings\.(\w+)", (ROOT / "streaming" / "terminal" / "cli" / "agent.py").read_text()))
    read |= set(re.findall(r"\bsettings\.(\w+)", inspect.getsource(with_settings)))

    assert {option.name for option in OPTIONS.values() if option.attribute in read} - OWN_OPTIONS == AGENT_OPTIONS


def test_executors_find_certificates_and_state_where_the_driver_does() -> None:
    manifests = render({}, CHART / "ci" / "shared-volume-values.yaml")
    (job,) = [pod for component, pod in pods(manifests) if component == "job"]
    (executor,) = [pod for component, pod in pods(manifests) if component == "executor"]
    places = [{mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]} for pod in (job, executor)]
    claims = [{each["name"]: each.get("persistentVolumeClaim") or each.get("secret") for each in pod["volumes"]} for pod in (job, executor)]

    for path in ("/etc/segtail/tls", "/var/lib/segtail"):
        assert claims[0][places[0][path]] == claims[1][places[1][path]] is not None
    assert settings(manifests, "job")["spark_checkpoint"].startswith("file:///var/lib/segtail/")


def test_the_driver_is_called_by_the_name_of_its_pod() -> None:
    manifests = render({}, CHART / "ci" / "executors-values.yaml")
    spark = settings(manifests, "job")["spark"]
    stateful = named(manifests, "StatefulSet", f"{RELEASE}-segtail-job")
    pod = f"{RELEASE}-segtail-job-0"

    assert spark["spark.kubernetes.driver.pod.name"] == pod
    assert spark["spark.driver.host"] == f"{pod}.{stateful['spec']['serviceName']}.kafka.svc"
    assert named(manifests, "Service", stateful["spec"]["serviceName"])["spec"]["clusterIP"] == "None"


def test_selectors_meet_the_pods_that_they_mean() -> None:
    """Of every Service, monitor, policy and budget: it selects the pods of one component, and no others."""
    manifests = render({}, CHART / "ci" / "executors-values.yaml")
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in manifests if each["kind"] in ("DaemonSet", "StatefulSet")]
    labels.append(yaml.safe_load(named(manifests, "ConfigMap", f"{RELEASE}-segtail-job")["data"]["executor.yaml"])["metadata"]["labels"])
    for each in manifests:
        if each["kind"] in ("Service", "PodMonitor", "NetworkPolicy", "PodDisruptionBudget"):
            selector = each["spec"].get("podSelector") or each["spec"]["selector"]
            selector = selector.get("matchLabels", selector)
            assert len([pod for pod in labels if selector.items() <= pod.items()]) == 1, each["metadata"]["name"]


def test_the_longest_names_still_fit() -> None:
    """63 characters for what becomes a label or a host name, of which pods' own endings take some."""
    long = "a-name-of-forty-characters-and-then-some-more-of-them-still"
    broker = {"pod": "my-cluster-with-a-rather-long-name-broker-100", "claims": [{"name": "data"}]}
    values = {"fullnameOverride": long, "agents": {"mode": "volumes", "volumes": {"brokers": [broker]}}}

    for manifest in render(values):
        room = {"StatefulSet": 52, "DaemonSet": 52, "CronJob": 52}.get(manifest["kind"], 63)
        assert len(manifest["metadata"]["name"]) <= room, manifest["metadata"]["name"]


def test_two_brokers_of_long_names_get_two_agents() -> None:
    brokers = [{"pod": f"my-cluster-with-a-rather-long-name-broker-{number}", "claims": [{"name": f"data-{number}"}]} for number in (1, 2)]
    values = {
        "fullnameOverride": "a-name-of-forty-characters-and-then-some",
        "agents": {"mode": "volumes", "volumes": {"brokers": brokers}},
    }

    names = [manifest["metadata"]["name"] for manifest in render(values) if manifest["kind"] in ("CronJob", "PersistentVolumeClaim")]

    assert len(set(names)) == len(names) == 3, "two CronJobs, a checkpoint"


def test_however_long_a_release_is_its_agents_are_known_by_their_names() -> None:
    """ObserverDown and the route of helm/README.md tell agents' pods and Jobs by `-agent-`; two releases' agents of one broker differ."""
    pattern = re.search(r'job_name=~"([^"]+)"', (ROOT / "helm" / "README.md").read_text())
    assert pattern
    broker = {"pod": "my-cluster-broker-0", "claims": [{"name": "data-0-my-cluster-broker-0"}]}
    releases = [
        "segtail",
        "rel-segtail",
        "kafka-production-eu-1-segtail",
        "kafka-production-eu-2-segtail",
        "segtail-of-the-production-cluster-one",
    ]
    names = []
    for fullname in releases:
        made = render({"fullnameOverride": fullname, "agents": {"mode": "volumes", "volumes": {"brokers": [broker]}}})
        names += [each["metadata"]["name"] for each in made if each["kind"] == "CronJob"]

    assert len({name[:-9] for name in names}) == len(releases), "without the hash of the pod"
    assert [name for name in names if not re.fullmatch(pattern[1], f"{name}-29000000")] == []


def test_an_agent_of_another_kind_is_another_cron_job() -> None:
    """A Job that runs keeps what its pod was made from: an upgrade that only changed its CronJob would leave the old agent there."""
    broker = {"pod": "kafka-0", "claims": [{"name": "data"}]}

    def made(**agents: object) -> Manifest:
        objects = render({"agents": {"mode": "volumes", "volumes": {"brokers": [broker]}, **agents}})
        (cron_job,) = [each for each in objects if each["kind"] == "CronJob"]
        return cron_job

    assert made() == made(enabled=True)
    assert made()["metadata"]["name"] != made(port=8816)["metadata"]["name"]


def test_the_chart_can_be_packed(tmp_path: Path) -> None:
    done = run("helm", "package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.iterdir()
    shutil.unpack_archive(archive, tmp_path / "unpacked", "gztar")

    assert contents(tmp_path / "unpacked" / "segtail" / "templates") == contents(CHART / "templates")
    assert not (tmp_path / "unpacked" / "segtail" / "ci").exists()
