from datetime import timedelta

from streaming.cluster.view.observer import Threshold, thresholds
from streaming.common.settings import OPTIONS, Settings


def test_a_threshold_has_the_name_of_its_option_and_the_unit_it_is_exported_in() -> None:
    reported = list(thresholds(Settings(stuck_after=timedelta(minutes=7), free_ratio=0.5)))
    assert Threshold(name="stuck_after", unit="seconds", value=420.0) in reported
    assert Threshold(name="free_ratio", unit="ratio", value=0.5) in reported
    assert {each.name for each in reported} <= set(OPTIONS)


def test_the_trigger_is_reported_as_the_longest_pause() -> None:
    assert Threshold(name="trigger", unit="seconds", value=30.0) in list(thresholds(Settings()))
    assert Threshold(name="trigger", unit="seconds", value=7.0) in list(thresholds(Settings(trigger=timedelta(seconds=7))))


def test_an_option_that_is_named_for_an_alert_is_exported() -> None:
    assert {each.name for each in thresholds(Settings())} >= {
        name for name, option in OPTIONS.items() if option.description.startswith("The alert ")
    }
