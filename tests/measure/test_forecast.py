"""Forecasts of collectives, compared with runs: never later than a run, and close to it."""

from __future__ import annotations

import pytest

from emu.measure.forecast import Forecast
from tests.support.rails import observed, rails
from tests.support.small_fabrics import spec_of
from traffic.collectives.channels import in_a_row
from traffic.collectives.collective import Cut, channels_for
from traffic.job import Job, Kind

MIB = 1 << 20


def forecast_ns(algorithm: str, servers: int, size: int) -> int:
    spec = spec_of(rails(servers))
    hosts = tuple(spec.topology.build().host)
    job = Job("job", Kind.ALL_REDUCE, algorithm, hosts, size)
    grouped = in_a_row(len(hosts), 4)
    cut = Cut(128 * 1024, channels_for(job, grouped))
    return Forecast(spec, spec.topology.build()).took_ns(job, cut, grouped)


@pytest.mark.parametrize("size", ["64KiB", "16MiB"])
@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize(
    "algorithm", ["ring", "tree", "double-tree", "halving-doubling", "hierarchical"]
)
def test_forecast_is_a_close_lower_bound(algorithm: str, servers: int, size: str) -> None:
    """Contention makes a run later by a tenth at most. Halving and doubling of twelve ranks crosses
    the spines, where paths collide, which no bound considers."""
    gpus = ", gpus: 4" if algorithm == "hierarchical" else ""
    entry = f"pattern: all-reduce, algorithm: {algorithm}{gpus}, size: {size}, chunk: 128KiB"
    (job,) = observed(servers, entry).jobs
    assert job.took_ns is not None
    bound = forecast_ns(algorithm, servers, {"64KiB": 65_536, "16MiB": 16 * MIB}[size])
    most = 1.4 if (algorithm, servers) == ("halving-doubling", 3) else 1.1
    assert 0.999 * bound <= job.took_ns <= most * bound
