"""How many random examples a property is tried with."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(suite: int) -> settings:
    """So many in the suite; with `--hypothesis-profile long` as many as that says."""
    in_suite = settings.get_current_profile_name() == "repeatable"
    return settings(
        max_examples=suite if in_suite else settings().max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
