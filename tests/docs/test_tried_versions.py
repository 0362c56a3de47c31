"""The versions of Kafka that the documents say segtail was tried with are those that the tests run."""

import re

from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION
from tests.broker.test_versions import RELEASES
from tests.docs.documented import ROOT
from tests.recorded.recordings import DATA
from tests.tables import each_row

TRIED = [BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION]


@each_row(
    ("document", "sentence"),
    [("README.md", r"Tried on brokers of Kafka (.*?) with"), ("docs/internals/architecture.md", r"against brokers of (.*?), and")],
)
def test_documents_name_the_versions_that_are_tried(document: str, sentence: str) -> None:
    (named,) = re.findall(sentence, (ROOT / document).read_text())
    assert re.findall(r"[\d.]+\d", named) == TRIED == [each.version for each in RELEASES]


def test_the_simulated_broker_is_that_of_the_version_that_goes_on_with_its_log_dirs() -> None:
    (version,) = re.findall(r"broker of `make demo` writes what ([\d.]+) writes", (ROOT / "README.md").read_text())
    assert DATA.joinpath(f"simulator-{version}.json").exists()
