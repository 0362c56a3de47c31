"""Commands of the documents that cannot be run beside other tests: why, and what is tested instead of them."""

from dataclasses import dataclass

from tests.docs.documented import Command


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Commands that begin so, of all sections or of one. ``instead`` is the test, or the script, that does it; "" if there is none."""

    begins: str
    reason: str
    instead: str = ""
    section: str = ""

    def holds(self, command: Command) -> bool:
        """Is it one of these commands?"""
        return " ".join(command.words).startswith(self.begins) and self.section in ("", command.section)


ONE_HOST = "One host in five minutes"


RESTARTS = "Loops and hooks"


ELSEWHERE = (
    Elsewhere("", "it restarts the reader's brokers", "tests/broker/test_restarts.py", section=RESTARTS),
    Elsewhere("kafka-transactions.sh", "it asks a broker, about a transaction of the reader's", "tests/broker/test_transactions.py"),
    Elsewhere("kafka-delete-records.sh", "it deletes records of the reader's broker"),
    Elsewhere('echo {"version":1,"partitions"', "its topic and its offset are the reader's"),
    Elsewhere("segtail top --job", "it asks a job", "tests/top/test_terminal.py"),
    Elsewhere("kubectl", "it changes a Kubernetes cluster", "tests/cluster/check_installation.py"),
    Elsewhere("", "it changes the machine on which it is typed", "tests/install/test_one_host.py", section=ONE_HOST),
    Elsewhere("segtail warm-up", "it runs a job, and writes 180 MB into the reader's cache", "tests/cli/test_warm_up.py"),
    Elsewhere("podman push", "it needs an image and a registry"),
    Elsewhere("podman run", "it needs an image, which takes minutes to build", "tests/image/test_image.py"),
    Elsewhere(".ci/run", "it installs Debian packages as root, and then runs all tests"),
    Elsewhere("pip install", "it asks an index for packages", "tests/install/test_base_install.py"),
    Elsewhere("apt install", "it installs a package on this machine", "tests/install/test_bare_machine.py"),
    Elsewhere("dnf install", "it installs a package on this machine", "tests/install/test_rpm.py"),
    Elsewhere("ansible-playbook", "it changes the hosts that it is given", "tests/install/test_ansible.py"),
    Elsewhere("systemctl enable --now segtail-agent", "it needs systemd and the package", "tests/install/test_bare_machine.py"),
    Elsewhere("uvx", "it asks an index for packages", "tests/install/test_base_install.py"),
    Elsewhere("pipx", "it asks an index for packages", "tests/install/test_base_install.py"),
    Elsewhere("scp", "it needs another host", "tests/install/test_bare_machine.py"),
    Elsewhere("ssh", "it needs another host", "tests/install/test_bare_machine.py"),
    Elsewhere(".venv/bin/pip install remote-pdb", "it installs something that only a developer with a debugger needs"),
    Elsewhere(".venv/bin/segtail run --log-dirs /a --checkpoint /tmp/debug", "it waits for a developer with a debugger"),
    Elsewhere("nc 127.0.0.1 4444", "it is a developer with a debugger"),
)
