"""The steps that build the management network; `emu.lab.build` carries them out."""

from __future__ import annotations

from emu.lab.out_of_band import firewall
from emu.lab.out_of_band.network import HOSTS, Network, agent_of
from emu.lab.plan import AddNamespace, LoadFirewall, NoIpv6, Step
from emu.spec.management_names import SWITCH


def namespaces_of(network: Network) -> list[Step]:
    """The steps for the namespaces."""
    return [AddNamespace(name, str(HOSTS)) for name in network.namespaces]


def steps_of(network: Network) -> list[Step]:
    """The steps for links, addresses and firewalls. Firewalls are there before any program is."""
    steps: list[Step] = [NoIpv6(name) for name in network.namespaces]
    steps += network.net_steps()
    if network.settings.firewall:
        steps.append(LoadFirewall(SWITCH, firewall.rules_of_switch(network)))
        for name in network.members:
            ruleset = firewall.rules_of_member(network, name)
            steps.append(LoadFirewall(agent_of(name), ruleset))
    return steps
