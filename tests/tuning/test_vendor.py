"""The winner for devices: names, units, what is rounded and what has no name."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

import emu
from emu.sweeps.values import Axis
from emu.tuning.parameters import parameter
from emu.tuning.vendor import VendorText, vendor_texts


def spec_of(fabric: str = "roce") -> emu.Spec:
    links = {
        "host": {"rate": "100Gbit", "length": "5m"},
        "fabric": {"rate": "400Gbit", "length": "40m"},
    }
    return emu.Spec(
        fabric=fabric,
        topology={
            "kind": "leaf-spine",
            "spines": 1,
            "leaves": 2,
            "hosts_per_leaf": 2,
            "links": links,
        },
        switches={"pfc": {"priorities": [3, 4]}, "ecn": "on", "buffer": "8MB"},
        traffic=[{"name": "one", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}],
    )


def texts(settings: dict[str, Any]) -> tuple[VendorText, VendorText]:
    parameters = [parameter(Axis(key, [value, value])) for key, value in settings.items()]
    sonic, nvidia = vendor_texts(spec_of(), parameters, settings)
    return sonic, nvidia


def test_a_curve_is_a_wred_profile_of_sonic() -> None:
    sonic, _ = texts(
        {"switches.ecn.kmin": "124KB", "switches.ecn.kmax": "1MiB", "switches.ecn.pmax": 0.05}
    )
    assert json.loads(sonic.text) == {
        "WRED_PROFILE": {
            "AZURE_LOSSLESS": {
                "ecn": "ecn_all",
                "wred_green_enable": "true",
                "green_min_threshold": "124000",
                "green_max_threshold": "1048576",
                "green_drop_probability": "5",
            }
        }
    }
    assert sonic.missing == []
    assert "QUEUE entry" in sonic.notes[0]


def test_alpha_is_a_power_of_two_of_each_lossless_profile() -> None:
    sonic, _ = texts({"switches.pfc.xoff": "alpha 1/8", "switches.alpha": 8.0})
    assert json.loads(sonic.text)["BUFFER_PROFILE"] == {
        "pg_lossless_100000_5m_profile": {"dynamic_th": "-3"},
        "pg_lossless_400000_40m_profile": {"dynamic_th": "-3"},
        "q_lossy_profile": {"dynamic_th": "3"},
    }


def test_an_alpha_between_powers_of_two_is_not_invented() -> None:
    sonic, _ = texts({"switches.pfc.xoff": "alpha 3"})
    assert sonic.text == ""
    assert sonic.missing == ["switches.pfc.xoff"]
    assert sonic.notes == ["switches.pfc.xoff alpha 3: dynamic_th takes powers of two alone."]


def test_a_threshold_in_bytes_is_static() -> None:
    sonic, _ = texts({"switches.pfc.xoff": "96KB"})
    profiles = json.loads(sonic.text)["BUFFER_PROFILE"]
    assert profiles["pg_lossless_100000_5m_profile"] == {"static_th": "96000"}


def test_a_rounded_probability_is_noted() -> None:
    sonic, nvidia = texts({"switches.ecn.pmax": 0.0126})
    assert json.loads(sonic.text)["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_drop_probability"] == "1"
    for own in (sonic, nvidia):
        assert "switches.ecn.pmax 1.26 % is written as 1 %." in own.notes


def test_cumulus_has_the_lossless_queues() -> None:
    _, nvidia = texts({"switches.ecn.kmin": "124KB"})
    assert nvidia.text.splitlines() == [
        "# on each switch",
        "nv set qos congestion-control default-global traffic-class 3,4 min-threshold 124000",
        "nv config apply",
    ]


def test_parameters_of_nics_are_in_the_units_of_the_driver() -> None:
    _, nvidia = texts(
        {
            "hosts.nic.roce_cc_ecn.rpg_ai_rate": 264,
            "hosts.nic.roce_cc_ecn.rate_reduce_monitor_period": 50,
        }
    )
    assert "echo 264 > /sys/kernel/debug/mlx5/$PCI/cc_params/rp_ai_rate" in nvidia.text
    assert "cc_params/rp_rate_reduce_monitor_period" in nvidia.text
    assert nvidia.notes == []


def test_the_papers_parameters_are_called_a_first_guess() -> None:
    _, nvidia = texts(
        {
            "hosts.nic.dcqcn.rai": "150Mbit",
            "hosts.nic.dcqcn.increase_timer": "30us",
            "hosts.nic.dcqcn.g": 1 / 256,
            "hosts.nic.dcqcn.byte_counter": "10MB",
        }
    )
    assert [line for line in nvidia.text.splitlines() if line.startswith("echo")] == [
        "echo 150 > /sys/kernel/debug/mlx5/$PCI/cc_params/rp_ai_rate",
        "echo 30 > /sys/kernel/debug/mlx5/$PCI/cc_params/rp_time_reset",
        "echo 1020 > /sys/kernel/debug/mlx5/$PCI/cc_params/rp_dce_tcp_g",
    ]
    assert nvidia.missing == ["hosts.nic.dcqcn.byte_counter"], "more than the field of 15 bits"
    assert "a first guess" in nvidia.notes[0]


def test_keys_without_a_name_are_listed() -> None:
    sonic, nvidia = texts({"switches.roles.leaf.ecn.kmin": "9KB", "hosts.nic.mtu": 4096})
    assert sonic.missing == nvidia.missing == ["switches.roles.leaf.ecn.kmin", "hosts.nic.mtu"]
    assert sonic.text == nvidia.text == ""


def test_infiniband_has_no_text() -> None:
    key = "switches.credits.buffer"
    parameters = [parameter(Axis(key, ["16KiB", "32KiB"]))]
    assert vendor_texts(spec_of("ib"), parameters, {key: "16KiB"}) == []
