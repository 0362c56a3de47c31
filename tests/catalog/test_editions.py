"""What changed since a version, put into what was known then, leads to what there is, whoever asks when."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.common.catalog
from streaming.common.catalog import NOTHING_DECIDED, Catalog, Changes, Editions, Version, unpack
from streaming.errors import FormatError
from tests.catalog.catalogs import catalog, rows_of

_BROKERS = st.none() | st.lists(st.integers(1, 3), max_size=3)
_NAMES = st.tuples(st.sampled_from(["orders", "bills"]), st.sampled_from(["", "a", "b"]))


def _rows(values: st.SearchStrategy[dict[str, object]], *, partitions: bool) -> st.SearchStrategy[list[dict[str, object]]]:
    keys = st.tuples(_NAMES, st.integers(0, 2 if partitions else 0))
    return st.dictionaries(keys, values, max_size=5).map(
        lambda found: [
            {"topic": topic, "topic_id": topic_id, **({"partition": number} if partitions else {}), **value}
            for ((topic, topic_id), number), value in found.items()
        ]
    )


CATALOGS = st.builds(
    lambda topics, partitions, logs: catalog(topics=topics, partitions=partitions, logs=logs),
    _rows(st.fixed_dictionaries({"configs": st.sampled_from(["", "{}"])}), partitions=False),
    _rows(st.fixed_dictionaries({"leader": st.integers(-2, 2), "isr": _BROKERS, "replicas": _BROKERS}), partitions=True),
    _rows(st.fixed_dictionaries({"high_watermark": st.integers(-2, 2)}), partitions=True),
)


def new_editions(first: Catalog) -> Editions:
    made = Editions()
    made.update(first)
    return made


def changes(made: Editions, *known: Version) -> Changes:
    reported = made.since(known)
    assert reported is not None
    return reported


class Asker:
    """One that asks for what changed, and keeps what comes of it."""

    def __init__(self) -> None:
        self.version: Version | None = None
        self.known = NOTHING_DECIDED

    def ask(self, made: Editions, others: list[Version]) -> Changes:
        reported = changes(made, *others, *([] if self.version is None else [self.version]))
        reported = unpack(reported.pack(), reported.version, whole=reported.whole)  # as it crosses the wire
        self.version, self.known = reported.version, reported.applied(self.known)
        return reported


def test_who_knows_a_version_from_before_what_is_remembered_is_given_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming.common.catalog, "MOST_GONE", 2)
    made, versions = Editions(), []
    for first in range(4):  # one after the other goes
        made.update(catalog(logs=[{"partition": number} for number in range(first, 5)]))
        versions.append(changes(made).version)
        if first == 2:  # two are gone, and that is remembered
            assert [row["partition"] for row in changes(made, versions[0]).tables[-1].to_pylist()] == [0, 1]
    reported = [changes(made, version) for version in versions]
    assert [each.whole for each in reported] == [True, True, False, False]
    rows = [[(row["partition"], row["gone"]) for row in each.tables[-1].to_pylist()] for each in reported]
    assert rows == [[(3, False), (4, False)]] * 2 + [[(2, True)], []]


@given(st.lists(CATALOGS | st.sampled_from(["restart", "first asks", "second asks"]), max_size=20), st.sampled_from([2, 10_000]))
def test_changes_come_to_the_whole(steps: list[Catalog | str], most_gone: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming.common.catalog, "MOST_GONE", most_gone)
        made, now = new_editions(NOTHING_DECIDED), NOTHING_DECIDED
        askers = {"first asks": Asker(), "second asks": Asker()}
        for step in [*steps, *askers]:
            if isinstance(step, Catalog):
                now = step
                made.update(now)
            elif step == "restart":
                made = new_editions(now)
            else:
                askers[step].ask(made, [Version("of another agent", 7)])
                assert rows_of(askers[step].known) == rows_of(now)
        assert rows_of(changes(made).applied(NOTHING_DECIDED)) == rows_of(now)


def test_only_what_changed_is_reported() -> None:
    made, asker = Editions(), Asker()
    made.update(catalog(logs=[{"partition": number, "high_watermark": 5} for number in range(3)]))
    assert asker.ask(made, []).whole
    made.update(catalog(logs=[{"partition": number, "high_watermark": 5 + number // 2} for number in range(3)]))
    reported = asker.ask(made, [])
    assert not reported.whole
    assert [(row["partition"], row["high_watermark"]) for row in reported.tables[-1].to_pylist()] == [(2, 6)]
    assert asker.ask(made, []).pack() == ""


def test_the_same_again_is_no_other_version() -> None:
    made = Editions()
    made.update(catalog(partitions=[{"isr": [1, 2]}]))
    before = changes(made).version
    made.update(catalog(partitions=[{"isr": [1, 2]}]))
    assert changes(made).version == before
    made.update(catalog(partitions=[{"isr": None}]))
    assert changes(made).version != before


def test_before_anything_is_made_nothing_is_reported_and_not_that_nothing_is_there() -> None:
    made = Editions()
    assert made.since([]) is None
    made.update(NOTHING_DECIDED)
    assert changes(made).whole


def test_what_a_later_process_was_reported_is_not_taken_for_this_one() -> None:
    made = Editions()
    made.update(catalog(logs=[{}]))
    assert changes(made, Version("another", 1)).whole
    assert changes(made, Version(changes(made).version.process, 9)).whole  # of a future that this process has not seen


@pytest.mark.parametrize("packed", ["what", "AAAA", "eJwDAAAAAAE="])
def test_what_is_no_catalog_is_an_error(packed: str) -> None:
    with pytest.raises(FormatError, match="a catalog is not understood"):
        unpack(packed, Version("one", 1), whole=True)


def test_a_catalog_without_one_of_its_columns_is_an_error() -> None:
    made = Editions()
    made.update(catalog(partitions=[{"isr": [1]}]))
    now = changes(made)
    with pytest.raises(FormatError, match="a catalog is not understood"):
        unpack(replace(now, tables=(now.tables[0], now.tables[1].drop_columns(["isr"]), now.tables[2])).pack(), now.version, whole=True)
