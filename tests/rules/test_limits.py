import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.properties import READABLE_KEYS
from streaming.rules.config_values import (
    NAMES,
    Configs,
    Setting,
    TopicPattern,
    ValueSource,
    broker_configs,
    pattern_configs,
    read_configs,
    topic_configs,
)
from streaming.rules.limits import Limiter, effective_limits, limits_of, producer_expiration
from tests.tables import each_row

HOUR = 3_600_000


def static(**pairs: object) -> Configs:
    """Of a broker whose topics are known to set nothing."""
    return topic().over(broker_configs(written(pairs), ValueSource.STATIC))


def dynamic(**pairs: object) -> Configs:
    return topic().over(broker_configs(written(pairs), ValueSource.DYNAMIC))


def topic(**pairs: object) -> Configs:
    return topic_configs(written(pairs))


def written(pairs: dict[str, object]) -> list[tuple[str, str]]:
    return [(name.replace("_", "."), str(value)) for name, value in pairs.items()]


def test_only_what_may_be_read_is_asked_for():
    assert NAMES <= READABLE_KEYS


def test_kafkas_defaults_stand_in_for_what_nobody_sets():
    limits = effective_limits("t", Configs())
    assert (limits.cleanup_policy, limits.retention_ms, limits.retention_bytes) == ("delete", 7 * 24 * HOUR, -1)
    assert (limits.segment_ms, limits.segment_bytes, limits.source) == (7 * 24 * HOUR, 1 << 30, ValueSource.ASSUMED)


def test_defaults_are_no_assumption_where_server_properties_is_known():
    assert effective_limits("t", static()).source is ValueSource.STATIC


def test_each_level_beats_the_ones_below_it():
    levels = [topic(retention_ms=1), dynamic(log_retention_ms=2), dynamic(log_retention_ms=3), static(log_retention_ms=4)]
    for first, (value, source) in enumerate([(1, "topic"), (2, "dynamic"), (3, "dynamic"), (4, "static")]):
        configs = Configs()
        for level in reversed(levels[first:]):
            configs = level.over(configs)
        limits = effective_limits("t", configs)
        assert (limits.retention_ms, limits.source) == (value, source)


def test_inside_a_level_the_finer_unit_counts():
    assert effective_limits("t", static(log_retention_hours=1, log_retention_minutes=2)).retention_ms == 120_000
    assert effective_limits("t", static(log_retention_hours=1, log_retention_minutes=2, log_retention_ms=3)).retention_ms == 3
    assert effective_limits("t", static(log_roll_hours=2)).segment_ms == 2 * HOUR
    assert effective_limits("t", static(log_roll_hours=2, log_roll_ms=7)).segment_ms == 7


def test_a_coarse_name_of_a_stronger_level_beats_a_fine_one_of_a_weaker():
    assert effective_limits("t", dynamic(log_retention_minutes=5).over(static(log_retention_ms=3))).retention_ms == 300_000


@pytest.mark.parametrize("name", ["log_retention_hours", "log_retention_minutes", "log_retention_ms"])
def test_any_negative_retention_of_a_broker_is_none(name):
    assert effective_limits("t", static(**{name: -1})).retention_ms == -1


def test_spaces_around_a_value_do_not_count():
    assert effective_limits("t", static(log_retention_ms=" 5 ", log_cleanup_policy=" compact , delete")).cleanup_policy == "compact,delete"


@pytest.mark.parametrize(("policy", "deletes", "compacts"), [("delete", True, False), ("delete,compact", True, True), ("", False, False)])
def test_policies(policy, deletes, compacts):
    limits = effective_limits("t", topic(cleanup_policy=policy))
    assert (limits.deletes, limits.compacts) == (deletes, compacts)


@each_row(
    ("name", "value"),
    [
        ("retention.ms", "a week"),
        ("retention.ms", "1_000"),
        ("retention.ms", str(2**63)),
        ("retention.bytes", "1e9"),
        ("segment.bytes", "0"),
        ("cleanup.policy", "shrink"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("message.timestamp.type", "createtime"),
        ("remote.storage.enable", "yes"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_and_the_next_level_stands_in(name, value):
    configs = topic_configs([(name, value)])
    assert configs == Configs(topic_known=True, rejected=(Setting(name, value, ValueSource.TOPIC),))
    assert effective_limits("t", configs) == effective_limits("t", topic())


def test_a_value_that_cannot_be_read_leaves_the_other_names_of_its_level():
    configs = static(log_retention_ms="soon", log_retention_hours=1)
    assert effective_limits("t", configs).retention_ms == HOUR
    assert configs.rejected == (Setting("log.retention.ms", "soon", ValueSource.STATIC),)


def test_a_variable_in_server_properties_leaves_what_it_sets_assumed():
    variable = static(log_retention_hours="${env:HOURS}", min_insync_replicas="${env:ISR}")
    for limits in (effective_limits("t", variable), limits_of("t", variable.text())):
        assert (limits.retention_ms, limits.source, limits.judges_expiry) == (7 * 24 * HOUR, ValueSource.ASSUMED, False)
        assert not limits.min_insync_known
    coarser = static(log_retention_ms="${env:MS}", log_retention_hours=1)  # it may be anything, whatever the hours are
    assert limits_of("t", coarser.text()).source is ValueSource.ASSUMED
    assert limits_of("t", topic(retention_ms=5).over(variable).text()).source is ValueSource.TOPIC
    assert limits_of("t", dynamic(log_retention_hours=2).over(variable).text()).source is ValueSource.DYNAMIC


def test_what_a_job_is_given_goes_before_a_variable_that_an_agent_has_read():
    of_job = broker_configs([("log.retention.hours", "3")], ValueSource.STATIC)
    limits = Limiter(lambda: {1: of_job}).now()(1, "t", static(log_retention_hours="${env:HOURS}").text())
    assert (limits.retention_ms, limits.source) == (3 * HOUR, ValueSource.STATIC)


def test_an_hour_count_too_large_for_milliseconds_is_rejected():
    assert static(log_retention_hours=2**62).rejected


def test_kafkas_internal_segment_size_goes_before_the_public_one():
    assert effective_limits("t", topic(internal_segment_bytes=6000, segment_bytes=1 << 20)).segment_bytes == 6000


def test_with_remote_storage_local_limits_count_and_fall_back_to_the_whole_ones():
    tiered = {"remote_storage_enable": "true", "retention_ms": 100, "retention_bytes": 200}
    limits = effective_limits("t", topic(**tiered, local_retention_ms=10))
    assert (limits.retention_ms, limits.retention_bytes, limits.remote_copy) == (10, 200, True)
    later = effective_limits("t", topic(**tiered, local_retention_ms=10, remote_copy_lag_ms=5, remote_copy_lag_bytes=-1))
    assert later == limits  # when a segment is copied is not when it may go
    stopped = effective_limits("t", topic(**tiered, local_retention_ms=10, remote_log_copy_disable="true"))
    assert (stopped.retention_ms, stopped.remote_storage, stopped.remote_copy) == (100, True, False)


@pytest.mark.parametrize(("name", "policy"), [("t", "compact"), ("__consumer_offsets", "delete")])
def test_compacted_and_internal_topics_are_never_tiered(name, policy):
    assert not effective_limits(name, topic(remote_storage_enable="true", cleanup_policy=policy)).remote_storage


def test_the_metadata_log_is_neither_deleted_by_age_nor_compacted():
    limits = effective_limits("__cluster_metadata", dynamic(log_retention_ms=1, log_cleanup_policy="compact,delete"))
    assert (limits.deletes, limits.compacts, limits.source) == (False, False, ValueSource.STATIC)


def test_the_source_of_limits_is_the_stronger_of_time_and_size():
    assert effective_limits("t", topic(retention_bytes=1, retention_ms=1)).source is ValueSource.TOPIC
    assert effective_limits("t", dynamic(log_retention_bytes=1).over(static(log_retention_ms=1))).source is ValueSource.DYNAMIC


def test_a_level_that_lifts_a_limit_is_not_where_the_other_comes_from():
    timed, sized = static(log_retention_ms=5), static(log_retention_bytes=5)
    assert effective_limits("t", topic(retention_bytes=-1).over(timed)).source is ValueSource.STATIC
    assert effective_limits("t", topic(retention_ms=-1).over(sized)).source is ValueSource.STATIC
    assert effective_limits("t", topic(retention_ms=-1).over(dynamic(log_retention_bytes=5)).over(timed)).source is ValueSource.DYNAMIC
    tiered = topic(remote_storage_enable="true", retention_ms=9, retention_bytes=9, local_retention_bytes=-1)
    assert effective_limits("t", tiered.over(static(log_local_retention_ms=5))).source is ValueSource.STATIC


def test_where_nothing_limits_it_is_named_what_lifts_the_limit_in_time():
    assert effective_limits("t", topic(retention_ms=-1).over(static())).source is ValueSource.TOPIC
    assert effective_limits("t", topic(retention_bytes=-1).over(static(log_retention_ms=-1))).source is ValueSource.STATIC


def test_a_limit_in_time_that_is_assumed_makes_the_whole_of_it_an_assumption():
    assert effective_limits("t", topic(retention_bytes=1)).source is ValueSource.ASSUMED
    assert effective_limits("t", topic(retention_ms=1)).source is ValueSource.TOPIC  # a size that nobody sets deletes nothing
    assert effective_limits("t", topic(remote_storage_enable="true", retention_ms=1)).source is ValueSource.ASSUMED
    assert effective_limits("t", topic(remote_storage_enable="true", local_retention_ms=1)).source is ValueSource.TOPIC


def test_without_the_topics_own_level_nothing_is_known_of_it():
    known = broker_configs([("log.retention.ms", "5"), ("log.cleanup.policy", "compact")], ValueSource.STATIC)
    for configs in (known, broker_configs([("log.retention.ms", "5")], ValueSource.DYNAMIC).over(known)):
        limits = effective_limits("t", configs)
        assert (limits.retention_ms, limits.source, limits.min_insync_known) == (5, ValueSource.ASSUMED, False)
    matched = pattern_configs("t", [TopicPattern(re.compile("t"), topic(cleanup_policy="delete"))])
    limits = effective_limits("t", matched.over(known))
    assert (limits.retention_ms, limits.source, limits.min_insync_known) == (5, ValueSource.STATIC, True)


@each_row(
    ("name", "policy", "retention_ms", "segment_bytes", "min_isr"),
    [
        ("__consumer_offsets", "compact", 5, 100 << 20, 1),
        ("__transaction_state", "compact", 5, 100 << 20, 2),
        ("__share_group_state", "delete", -1, 100 << 20, 1),
        ("__remote_log_metadata", "delete", -1, 1 << 30, 1),
        ("t", "delete", 5, 1 << 30, 1),
    ],
)
def test_kafkas_own_topics_are_taken_to_have_what_brokers_make_them_with(name, policy, retention_ms, segment_bytes, min_isr):
    limits = effective_limits(name, broker_configs([("log.retention.ms", "5")], ValueSource.STATIC))
    assert (limits.cleanup_policy, limits.retention_ms, limits.segment_bytes) == (policy, retention_ms, segment_bytes)
    assert (limits.min_insync_replicas, limits.source) == (min_isr, ValueSource.ASSUMED)
    limits = effective_limits(name, topic(cleanup_policy="delete", retention_ms=7))
    assert (limits.cleanup_policy, limits.retention_ms, limits.segment_bytes, limits.source) == ("delete", 7, 1 << 30, ValueSource.TOPIC)


def test_a_broker_without_a_cleaner_does_not_delete_what_should_be_compacted_too():
    both = topic(cleanup_policy="compact,delete")
    limits = effective_limits("t", both.over(static(log_cleaner_enable="false")))
    assert (limits.cleanup_policy, limits.deletes, limits.compacts) == ("compact,delete", False, True)
    assert effective_limits("t", both).deletes
    assert effective_limits("t", topic().over(static(log_cleaner_enable="false"))).deletes


def test_a_compacted_topic_rolls_within_its_greatest_lag():
    limits = effective_limits("t", topic(cleanup_policy="compact", segment_ms=100, max_compaction_lag_ms=40))
    assert (limits.segment_ms, limits.roll_ms) == (100, 40)


def test_the_first_pattern_that_matches_a_whole_name_counts():
    patterns = [TopicPattern(re.compile("audit-.*"), topic(retention_ms=1)), TopicPattern(re.compile("a.*"), topic(retention_ms=2))]
    found = [effective_limits(name, pattern_configs(name, patterns)).retention_ms for name in ("audit-x", "abc", "b-audit-x")]
    assert found == [1, 2, 7 * 24 * HOUR]


VALUES = st.sampled_from(["1", "60000", "-1", "delete", "compact", "true", "0.3", "x", ""])


@given(*(st.dictionaries(st.sampled_from(sorted(NAMES)), VALUES) for _ in range(3)), st.booleans())
def test_what_is_handed_over_comes_to_the_same_limits(of_topic, of_broker, of_file, known):
    configs = topic_configs(of_topic.items()).over(broker_configs(of_broker.items(), ValueSource.DYNAMIC))
    if known:
        configs = configs.over(broker_configs(of_file.items(), ValueSource.STATIC))
    assert limits_of("t", configs.text()) == effective_limits("t", configs)
    assert read_configs(configs.text()).text() == configs.text()


def test_nothing_handed_over_is_nothing_known():
    assert read_configs("") == Configs()


def test_names_and_levels_of_a_later_version_are_passed_over():
    read = read_configs('{"topic":{"retention.ms":"5","new.name":"x"},"tenant":{"retention.ms":"1"}}')
    assert effective_limits("t", read).retention_ms == 5


@each_row("text", ["x", "[]", '{"topic":5}', '{"topic":{"retention.ms":5}}', '{"topic":{"retention.ms":"soon"}}'])
def test_another_text_is_refused(text):
    with pytest.raises(FormatError):
        read_configs(text)


@given(
    st.dictionaries(st.sampled_from(sorted(NAMES)), VALUES, max_size=6), st.dictionaries(st.sampled_from(sorted(NAMES)), VALUES, max_size=6)
)
def test_whoever_reads_a_limit_reads_the_same(of_topic, of_broker):
    below = broker_configs(of_broker.items(), ValueSource.STATIC)
    reported = topic_configs(of_topic.items()).over(below)  # as an agent that reads the metadata log puts them together
    given_pattern = pattern_configs("t", [TopicPattern(re.compile("t"), topic_configs(of_topic.items()))]).over(below)
    expected = effective_limits("t", reported)
    assert effective_limits("t", given_pattern) == expected  # by topic_config
    assert limits_of("t", reported.text()) == expected  # by the text that it hands over

    def static():
        return {1: below}

    assert Limiter(static).now()(1, "t", topic_configs(of_topic.items()).text()) == expected  # below which the job puts what it knows
    patterns = [TopicPattern(re.compile("t"), topic_configs(of_topic.items()))]
    assert Limiter(static, patterns=patterns).now()(1, "t", "{}") == expected


def test_the_metadata_log_rolls_by_its_own_options_alone() -> None:
    set_for_others = {"log.segment.bytes": "7340032", "log.roll.hours": "2"}
    dynamic, own = set_for_others, {**set_for_others, "metadata.log.segment.bytes": "16777216", "metadata.log.segment.ms": "3600000"}
    unset = effective_limits("__cluster_metadata", broker_configs(dynamic.items(), ValueSource.DYNAMIC))
    assert (unset.segment_bytes, unset.segment_ms) == (1 << 30, 168 * 3_600_000)
    given = effective_limits("__cluster_metadata", broker_configs(own.items(), ValueSource.STATIC))
    assert (given.segment_bytes, given.segment_ms) == (16_777_216, 3_600_000)
    other = effective_limits("orders", broker_configs(own.items(), ValueSource.STATIC))
    assert (other.segment_bytes, other.segment_ms) == (7_340_032, 7_200_000)


def test_what_is_tried_goes_before_the_topic_and_a_pattern_only_stands_in_for_it() -> None:
    patterns = [TopicPattern(re.compile("t"), topic(retention_ms=7))]
    made = Limiter(dict, patterns=patterns)
    texts = (topic(retention_ms=5).text(), topic().text(), "{}")
    assert [made.now()(1, "t", text).retention_ms for text in texts] == [5, 7 * 24 * HOUR, 7]
    tried = made.trying(lambda name: topic(retention_ms=9) if name == "t" else Configs())
    assert [tried.now()(1, "t", text).retention_ms for text in texts] == [9, 9, 9]
    assert tried.now()(1, "u", texts[0]).retention_ms == 5


@each_row(("metadata_version", "expected"), [(7, 9000), (8, 4000), (30, 4000), (-1, 4000)])
def test_up_to_kafka_3_3_a_producer_lives_as_long_as_a_transactional_id(metadata_version: int, expected: int) -> None:
    pairs = [("producer.id.expiration.ms", "4000"), ("transactional.id.expiration.ms", "9000")]
    limits = effective_limits("t", broker_configs(pairs, ValueSource.STATIC))
    assert producer_expiration(limits, metadata_version) == expected


def test_kafkas_defaults_are_a_day_and_a_week() -> None:
    limits = effective_limits("t", broker_configs((), ValueSource.STATIC))
    assert (producer_expiration(limits, 8), producer_expiration(limits, 7)) == (86_400_000, 604_800_000)


@each_row(
    ("configs", "expected"),
    [
        (topic(compression_type="zstd"), "zstd"),
        (topic().over(static()), "producer"),
        (topic().over(static(compression_type="gzip")), "gzip"),
        (topic(compression_type="producer").over(dynamic(compression_type="gzip")), "producer"),
        (topic(compression_type="best").over(static()), "producer"),
        (topic(), ""),  # the broker may have one
        (broker_configs([("compression.type", "gzip")], ValueSource.STATIC), ""),  # as may the topic
    ],
)
def test_the_codec_of_a_broker_is_that_of_the_topic_or_its_own(configs: Configs, expected: str) -> None:
    assert effective_limits("t", configs).compression == expected
