"""The traffic of an imported fabric, whose files say nothing of traffic: small, for a first run."""

from __future__ import annotations

from typing import Any

TRAFFIC = {"name": "starter", "pattern": "permutation", "among": "all", "size": "1MB"}
TEXT = "each host writes 1 MB to another one (traffic: starter); put your own in its place"
ONE_HOST = "there is one host, so there is no traffic; give it another one, or add files"


def starter_traffic(hosts: int) -> list[dict[str, Any]]:
    """The `traffic:` section. One host alone has no traffic."""
    return [dict(TRAFFIC)] if hosts > 1 else []


def traffic_note(hosts: int) -> str:
    """What the traffic is."""
    return TEXT if hosts > 1 else ONE_HOST
