"""A port's counters under the PMA's names."""

from __future__ import annotations

from emu.fabric_kind import Framing
from emu.lab.rdma_sysfs.counters import hw_counters, pma_counters
from emu.measure.counter_table import NIC, PORT
from emu.measure.counters import infiniband_counters

RAW = {
    name: [1000 * place + number for number in range(cells)]
    for place, (name, cells) in enumerate(PORT.cells.items(), start=1)
}


def test_a_ports_counters_are_those_of_reports() -> None:
    """Reports compute them for many ports at once."""
    reported = infiniband_counters({"port": RAW})["port"]
    counted = pma_counters(RAW, Framing.INFINIBAND)
    assert len(counted) > 10
    assert counted == {name: reported[name] for name in counted}


def test_ethernets_data_are_whole_frames_in_words() -> None:
    counted = pma_counters(RAW, Framing.ETHERNET)
    assert counted["PortXmitData"] == sum(RAW["tx_bytes"]) // 4
    assert counted["PortRcvData"] == sum(RAW["rx_bytes"]) // 4


def test_hw_counters_are_those_that_linux_names() -> None:
    counted = hw_counters({name: [place] for place, name in enumerate(NIC.cells)})
    assert {"out_of_sequence", "np_cnp_sent", "local_ack_timeout_err"} <= counted.keys()
    assert "tx_packets" not in counted
    assert counted["packet_seq_err"] == list(NIC.cells).index("packet_seq_err")
