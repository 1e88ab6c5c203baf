"""An incast and its victim flow. Run this file with `pytest --emu-clock both`."""

import pytest

from emu.testing import expect, incast, pair


@pytest.mark.fabric("../topologies/incast.emu.yml")
def test_incast_is_lossless(fabric):
    """Four writers into one port lose nothing on the lossless priority."""
    run = fabric.run(traffic=[incast(to="h1", size="1MB", hosts="h2-h5")])
    assert run.completed == 4
    assert run.counter("leaf1:h2", "tx_prio3_pause") > 0
    expect(run).lossless(priority=3)


@pytest.mark.fabric(
    "../topologies/incast.emu.yml", switches={"ecn": {"kmin": "20KB", "kmax": "80KB"}}
)
def test_dcqcn_slows_senders_down_early(fabric):
    """With low thresholds packets are marked, and receivers send CNPs."""
    run = fabric.run(
        traffic=[incast(to="h1", size="256KB", hosts="h2-h5"), pair("h5", "h6", size="64KB")]
    )
    assert run.counter("total", "cnp") > 0
    expect(run).completed().goodput(flow="pair", at_least="1Gbit")
