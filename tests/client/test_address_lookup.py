"""Names of agents: looked up beside the work, kept while the name service is away."""

import threading
from collections.abc import Callable

from streaming.common.targets import Target
from streaming.spark.client.address_lookup import AGAIN_SECONDS, Name, addresses, unresolved


class Service:
    """A name service that answers when the test lets it."""

    def __init__(self, *answers: Callable[[], list[str]]) -> None:
        self.now = 0.0
        self._answers = list(answers)

    def look_up(self, host: str) -> list[str]:
        assert host == "agents"
        return self._answers.pop(0)()

    def name(self) -> Name:
        return Name("agents", self.look_up, lambda: self.now)

    def later(self, name: Name) -> tuple[str, ...]:
        """What is known after the next look."""
        self.now += AGAIN_SECONDS
        before = {thread for thread in threading.enumerate() if thread.name == "look up agents"}
        name.hosts()
        for thread in threading.enumerate():
            if thread.name == "look up agents" and thread not in before:
                thread.join()
        return name.hosts()


def found(*hosts: str) -> Callable[[], list[str]]:
    return lambda: list(hosts)


def fails() -> list[str]:
    raise OSError(-3, "Temporary failure in name resolution")


def test_the_first_look_is_waited_for_and_later_ones_are_not() -> None:
    go_on = threading.Event()
    service = Service(found("10.0.0.1"), lambda: [str(go_on.wait()), "10.0.0.2"][1:])
    name = service.name()
    assert name.hosts() == ("10.0.0.1",)
    service.now = AGAIN_SECONDS
    assert name.hosts() == name.hosts() == ("10.0.0.1",)  # the second look has not come back
    go_on.set()


def test_pods_come_and_go() -> None:
    service = Service(found("10.0.0.1"), found("10.0.0.1", "10.0.0.2"), found("10.0.0.3"))
    name = service.name()
    assert name.hosts() == ("10.0.0.1",)
    assert service.later(name) == ("10.0.0.1", "10.0.0.2")
    assert service.later(name) == ("10.0.0.3",)


def test_what_is_known_is_kept_while_a_name_leads_nowhere() -> None:
    service = Service(found("10.0.0.1"), fails, found(), found("10.0.0.2"))
    name = service.name()
    assert name.hosts() == ("10.0.0.1",)
    assert (service.later(name), name.problem) == (("10.0.0.1",), "Temporary failure in name resolution")
    assert (service.later(name), name.problem) == (("10.0.0.1",), "it has no address")
    assert (service.later(name), name.problem) == (("10.0.0.2",), "")


def test_addresses_of_all_kinds_come_once_each() -> None:
    targets = [Target.parse(each) for each in ("https://a:1", "b:2", "http://b:2", "dns:///127.0.0.1:3", "dns:///[::1]:3")]
    assert addresses(targets, tls=False) == ("https://a:1", "b:2", "127.0.0.1:3", "[::1]:3")
    assert addresses(targets, tls=True)[2] == "https://127.0.0.1:3/127.0.0.1"


def test_a_name_that_leads_nowhere_is_reported() -> None:
    nowhere = Target.parse("dns:///nowhere.invalid:8815")
    assert addresses([nowhere], tls=False) == ()
    assert unresolved([nowhere, Target.parse("dns:///127.0.0.1:1"), Target.parse("a:1")]) == ["dns:///nowhere.invalid:8815"]
