"""A Kubernetes control plane on loopback whose nodes are pretended: API server, controllers and scheduler are real, pods run no code."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.helm.charts import SHARE, Manifest
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import reap, until
from tests.tools import require_tool

NODES = ("node-1", "node-2")


_DELETED: Manifest = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "Stage",
    "metadata": {"name": "pod-ends"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {
            "matchExpressions": [
                {"key": ".metadata.deletionTimestamp", "operator": "Exists"},
                {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]},
                {"key": ".status.phase", "operator": "NotIn", "values": ["Succeeded", "Failed"]},
            ]
        },
        "weight": 1,  # before it is gone
        "next": {"statusTemplate": "phase: Succeeded"},
    },
}
"""As a kubelet does it, for a program that ends well when it is told to: the controller of Jobs waits for that."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running one.

    Args:
        server: address of its API server.
        ca: file of the certificate that it shows.
    """

    kubeconfig: Path
    server: str
    ca: Path

    def run(self, program: str, *arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs kubectl or helm to its end, whatever that is."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run([require_tool(program), *arguments], input=given, capture_output=True, text=True, env=environment)

    def kubectl(self, *arguments: str | Path, given: str | None = None) -> str:
        """What kubectl prints; it has to succeed."""
        done = self.run("kubectl", *arguments, given=given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def helm(self, *arguments: str | Path, given: str | None = None) -> str:
        """What helm prints; it has to succeed."""
        done = self.run("helm", *arguments, given=given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def apply(self, *manifests: Manifest) -> None:
        """Makes or changes objects."""
        self.kubectl("apply", "--filename", "-", given=yaml.safe_dump_all(manifests))

    def get(self, kind: str, namespace: str, selector: str = "") -> list[Manifest]:
        """All objects of a kind."""
        found: list[Manifest] = json.loads(self.kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json"))["items"]
        return found


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Starts one in this folder, and ends every process of it."""
    etcd, peer, api, controllers, scheduler = free_ports(5)
    server, made = (
        f"https://127.0.0.1:{api}",
        Cluster(folder / "kubeconfig", f"https://127.0.0.1:{api}", folder / "certs" / "apiserver.crt"),
    )
    key = folder / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text('admin-token,admin,1,"system:masters"\n')
    made.kubeconfig.write_text(json.dumps(_kubeconfig(server)))
    kubeconfig = f"--kubeconfig={made.kubeconfig}"
    with contextlib.ExitStack() as running:

        def start(name: str, arguments: Sequence[str | Path]) -> None:
            running.enter_context(_running(folder, name, [require_tool(name), *arguments]))

        client, members = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        urls = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={members}"]
        start(
            "etcd",
            [f"--data-dir={folder / 'etcd'}", *urls, f"--initial-advertise-peer-urls={members}", f"--initial-cluster=default={members}"],
        )
        start(
            "kube-apiserver",
            [
                f"--etcd-servers={client}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={api}",
                f"--cert-dir={folder / 'certs'}",
                "--service-account-issuer=https://cluster.test",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-cluster-ip-range=10.0.0.0/24",
                f"--token-auth-file={folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                "--allow-privileged=true",
                # Debian's etcd is too old for it, and clients that try it all the same lose their watches for seconds
                "--feature-gates=WatchList=false",
            ],
        )
        until("the API server is ready", lambda: made.run("kubectl", "get", "--raw", "/readyz").stdout == "ok")
        loopback = ["--bind-address=127.0.0.1", "--leader-elect=false", kubeconfig]
        start(
            "kube-controller-manager",
            [
                *loopback,
                f"--secure-port={controllers}",
                f"--cert-dir={folder / 'certs-controllers'}",
                f"--service-account-private-key-file={key}",
                f"--root-ca-file={made.ca}",
            ],
        )
        start("kube-scheduler", [*loopback, f"--secure-port={scheduler}", f"--cert-dir={folder / 'certs-scheduler'}"])
        (folder / "deleted.yaml").write_text(yaml.safe_dump(_DELETED))
        stages = [f"--config={path}" for path in (SHARE / "stages.yaml", folder / "deleted.yaml")]
        start("kwok", [kubeconfig, "--manage-all-nodes=true", "--node-ip=127.0.0.1", *stages])
        made.apply(*map(_node, NODES))
        made.kubectl("wait", "node", "--all", "--for=condition=Ready", f"--timeout={SECONDS}s")
        yield made


@contextlib.contextmanager
def _running(folder: Path, name: str, arguments: Sequence[str | Path]) -> Iterator[None]:
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        process.terminate()
        reap(process)


def _kubeconfig(server: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "admin", "user": {"token": "admin-token"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }


def _node(name: str) -> Manifest:
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "status": {"allocatable": room, "capacity": room},
    }
