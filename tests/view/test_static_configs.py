"""The static configurations of brokers: a file of a node that has no log dir here limits nothing here, and is logged."""

from pathlib import Path

import pytest

from streaming.cluster.view.page_context import static_configs


def test_a_server_properties_of_another_node_is_logged_and_sets_no_limit_of_those_that_are_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=7\nlog.retention.hours=1\n")
    assert static_configs([properties], {}, [1]).keys() == {7}
    ((message, broker),) = [(each.getMessage(), vars(each)["broker"]) for each in caplog.records]
    assert (message, broker) == ("server.properties of a broker without a log dir here", 7)
    caplog.clear()
    for brokers in ([7], [1, 7], None):
        assert static_configs([properties], {}, brokers).keys() == {7}
    assert not caplog.records
