"""Files for the programs of the management network, in the lab's own /run.

    /run/management/hosts            /etc/hosts of the agents and the collector
    /run/management/prometheus.yml   a configuration of Prometheus that reads all exporters

They end with the lab.
"""

from __future__ import annotations

import json
from pathlib import Path

from emu.lab.out_of_band.network import FOLDER, HOSTS, Network

PROMETHEUS = FOLDER / "prometheus.yml"
_HOSTS = Path("/etc/hosts")


def write_files(network: Network, lab: str) -> None:
    """Writes the files. The lab's /run must be mounted."""
    FOLDER.mkdir(exist_ok=True)
    HOSTS.write_text(_HOSTS.read_text() + network.hosts_file())
    if network.settings.exporter is not None:
        PROMETHEUS.write_text(prometheus_config(network, lab))


def prometheus_config(network: Network, lab: str) -> str:
    """A configuration of Prometheus. The lab's name is a label of all that it reads."""
    exporter = network.settings.exporter
    assert exporter is not None
    targets = [f"{node}:{exporter.port}" for node in network.nodes]
    return (
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        "scrape_configs:\n"
        "  - job_name: emu\n"
        "    static_configs:\n"
        f"      - targets: {json.dumps(targets)}\n"
        f"        labels: {{lab: {json.dumps(lab)}}}\n"
    )
