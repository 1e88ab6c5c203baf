"""The number of random examples for each property."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(suite: int) -> settings:
    """`suite` examples in the suite; with `--hypothesis-profile long` the number in that
    profile."""
    in_suite = settings.get_current_profile_name() == "repeatable"
    return settings(
        max_examples=suite if in_suite else settings().max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
