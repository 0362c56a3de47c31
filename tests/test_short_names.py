"""Names that may not leave the broker's host."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.short_names import PREFIX, redacted

CLUSTER = "AAECAwQFBgcICQoLDA0ODw"


@given(st.text(min_size=1))
def test_a_name_is_one_hash_in_a_cluster_and_another_elsewhere(name: str) -> None:
    hashed = redacted(name, CLUSTER)
    assert hashed == redacted(name, CLUSTER) != redacted(name, "other")
    assert hashed.startswith(PREFIX)
    assert len(hashed) == len(PREFIX) + 20
    assert redacted(hashed, CLUSTER) != hashed


def test_names_differ_where_ids_do_and_none_stays_none() -> None:
    assert len({redacted(f"payments-{number}", CLUSTER) for number in range(1000)}) == 1000
    assert redacted("", CLUSTER) == ""


def test_the_hash_never_changes() -> None:
    """It is joined with what older agents sent."""
    assert redacted("payments-0", CLUSTER) == "redacted-1895c22b7aa19e05c16b"
