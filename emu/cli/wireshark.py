"""`emu wireshark`: installs support for emulated fabrics into Wireshark."""

from __future__ import annotations

import click

from emu.cli.notes import print_note
from emu.wireshark.install import extcap_folder, install, uninstall


@click.command("wireshark")
@click.option("--remove", is_flag=True, help="Remove both.")
def command(remove: bool) -> None:
    """Install a profile and the cables of running labs into your Wireshark.

    Files of the profile that you have changed are neither replaced nor removed.

    Then `wireshark -C emu` has columns and colours for RDMA packets, CNPs, pauses
    and credits, and its list of interfaces has every port of the labs that are up.
    """
    if remove:
        for path in uninstall():
            print_note(f"{path} stays: it was changed after `emu wireshark` wrote it")
        print_note("profile and extcap are removed")
        return
    profile, program, kept = install()
    for path in kept:
        print_note(f"{path} was changed, and stays; move it away to install the new one")
    click.echo(f"profile  {profile}    wireshark -C emu")
    click.echo(f"extcap   {program}    interfaces like leaf1:h1@incast")
    print_note(f"Wireshark before 4.2 needs: export WIRESHARK_EXTCAP_DIR={extcap_folder()}")
