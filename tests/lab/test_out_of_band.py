"""The plan of the management network: links, isolated ports, firewalls and files."""

from __future__ import annotations

from emu.lab.out_of_band import firewall
from emu.lab.out_of_band.files import prometheus_config
from emu.lab.out_of_band.network import Network
from emu.lab.out_of_band.plan import namespaces_of, steps_of
from emu.lab.plan import AddNamespace, LoadFirewall
from emu.spec.management import Management
from tests.support.lab_fabrics import clos


def network(**settings: object) -> Network:
    return Network(clos(2), Management.model_validate(settings))


def texts(own: Network) -> list[str]:
    return [f"{step.namespace}: {step}" for step in own.net_steps()]


def test_every_node_has_a_namespace_and_a_port() -> None:
    own = network()
    names = [step.name for step in namespaces_of(own) if isinstance(step, AddNamespace)]
    assert names[0] == "mgmt_switch"
    assert {"h1 agent", "leaf1 agent", "mgmt"} <= {*names}
    lines = texts(own)
    assert lines[0] == "mgmt_switch: add bridge mgmt_switch mcast_snooping off"
    assert "leaf1 agent: add veth mgmt0 mtu 1500 peer leaf1 in mgmt_switch" in lines
    assert "mgmt_switch: set leaf1 master mgmt_switch" in lines


def test_no_step_touches_a_namespace_of_the_fabric() -> None:
    fabric = {"lab", "shim", "h1", "h2", "h3", "h4"}
    own = network()
    assert not fabric & {step.namespace for step in own.net_steps()}
    assert not any(f"in {name}" in line for name in fabric for line in texts(own))


def test_ports_of_nodes_are_isolated_unless_they_may_talk() -> None:
    def isolated(own: Network) -> set[str]:
        return {line.split()[2] for line in texts(own) if line.endswith("isolated on")}

    assert isolated(network()) == {"h1", "h2", "h3", "h4", "spine1", "spine2", "leaf1", "leaf2"}
    pair = {"from": "h1", "to": "leaf1", "service": "tcp/22"}
    assert isolated(network(allow=[pair])) == isolated(network()) - {"h1", "leaf1"}


def test_a_firewall_has_a_rule_for_each_cell() -> None:
    own = network(allow=[{"from": "mgmt", "to": "leaf1", "service": "tcp/22"}])
    rules = firewall.rules_of_member(own, "leaf1")
    address = own.addresses["mgmt"]
    assert f"iifname mgmt0 ip saddr {address} tcp dport 22 accept" in rules
    assert f"iifname mgmt0 ip saddr {address} tcp dport 9100 accept" in rules
    assert rules.count("policy drop") == 2
    assert "dport 22" not in firewall.rules_of_member(own, "leaf2")


def test_the_switch_knows_which_address_is_at_which_port() -> None:
    own = network()
    rules = firewall.rules_of_switch(own)
    for name, address in own.addresses.items():
        assert rules.count(f'"{name}" . {address}') == 2


def test_firewalls_can_be_left_out() -> None:
    assert any(isinstance(step, LoadFirewall) for step in steps_of(network()))
    without = steps_of(network(firewall=False))
    assert not any(isinstance(step, LoadFirewall) for step in without)


def test_addresses_differ_and_are_in_one_network() -> None:
    own = network()
    assert len({*own.addresses.values()}) == len(own.members)
    assert all(address.startswith("172.16.") for address in own.addresses.values())
    assert "172.16.0.1 h1 h1-mgmt0\n" in own.hosts_file()


def test_prometheus_is_given_every_exporter() -> None:
    text = prometheus_config(network(exporter={"port": 9101}), "here")
    assert '"leaf2:9101"' in text
    assert '{lab: "here"}' in text
