"""What a kubelet and a storage driver do for an agent beside its broker: run the agent of a pod, and attach volumes to nodes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.control_plane import NODES, Cluster
from tests.helm.charts import Manifest
from tests.processes import Segtail, segtail

DRIVER = "disk.example.com"


def disk(namespace: str, name: str) -> list[Manifest]:
    """A volume that one node may write, of a driver that attaches it, and the claim that has it."""
    space = {"storage": "1Gi"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{name}"},
            "spec": {
                "capacity": space,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disks",
                "claimRef": {"namespace": namespace, "name": name},
                "csi": {"driver": DRIVER, "volumeHandle": name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "resources": {"requests": space}},
        },
    ]


def leave_attaching_to_the_controller(kubernetes: Cluster) -> None:
    """What each kubelet tells of itself."""
    for node in NODES:
        kubernetes.kubectl("annotate", "node", node, "volumes.kubernetes.io/controller-managed-attach-detach=true", "--overwrite")


def attach(kubernetes: Cluster, volume: str) -> list[str]:
    """The driver's part, once: do what the attach/detach controller wants of a volume. Returns the nodes that have it then."""
    found = json.loads(kubernetes.kubectl("get", "volumeattachment", "-o", "json"))["items"]
    wanted = [each for each in found if each["spec"]["source"].get("persistentVolumeName") == volume]
    for each in wanted:
        name = each["metadata"]["name"]
        if "deletionTimestamp" not in each["metadata"] and not each.get("status", {}).get("attached"):
            patch = json.dumps({"status": {"attached": True}})
            kubernetes.kubectl("patch", "volumeattachment", name, "--subresource=status", "--type=merge", "--patch", patch)
    return [each["spec"]["nodeName"] for each in wanted]


@contextmanager
def agent_of(pod: Manifest, log_dir: Path, folder: Path) -> Iterator[Segtail]:
    """The agent of a pod, with what the chart tells it but for places: it runs on this machine, and without certificates."""
    (container,) = pod["spec"]["containers"]
    own = ("--config=", "--log-dirs=", "--listen=", "--metrics-listen=", "--tls-", "--token-file=")
    arguments = [each for each in container["args"] if not each.startswith(own)]
    places = ("--log-dirs", log_dir, "--listen", "127.0.0.1:0")
    with segtail(*arguments, *places, stated=folder / pod["metadata"]["name"]) as agent:
        yield agent


def end(kubernetes: Cluster, pod: Manifest, status: int) -> None:
    """What a kubelet tells of a pod whose container has ended with this exit status, and is not to be restarted."""
    assert pod["spec"]["restartPolicy"] == "Never"
    (running,) = pod["status"]["containerStatuses"]
    began = running["state"]["running"]["startedAt"]
    ended = running | {"ready": False, "state": {"terminated": {"exitCode": status, "startedAt": began, "finishedAt": began}}}
    patch = json.dumps({"status": {"phase": "Failed" if status else "Succeeded", "containerStatuses": [ended]}})
    place = ("-n", pod["metadata"]["namespace"])
    kubernetes.kubectl("patch", "pod", pod["metadata"]["name"], *place, "--subresource=status", "--type=merge", "--patch", patch)
