"""`emu pingpong`: exchanges messages between an emulated NIC and `ibv_rc_pingpong` or
`ibv_uc_pingpong`."""

from __future__ import annotations

import asyncio
import json
import time
from random import Random
from typing import Any

import click

from emu.cli.options import json_option


@click.command("pingpong")
@click.argument("server", required=False)
@click.option("--interface", metavar="NAME", required=True, help="Interface to the other end.")
@click.option(
    "--port", default=18515, show_default=True, help="TCP port by which the ends connect."
)
@click.option("--transport", type=click.Choice(["rc", "uc"]), default="rc", show_default=True)
@click.option("--size", default=4096, show_default=True, help="Bytes of a message.")
@click.option("--iters", default=1000, show_default=True, help="Messages each way.")
@click.option(
    "--mtu",
    type=click.Choice(["256", "512", "1024", "2048", "4096"]),
    default="1024",
    show_default=True,
    help="Path MTU, bytes.",
)
@click.option("--slowdown", default=100.0, show_default=True, help="Slowdown of the NIC's clock.")
@click.option(
    "--timeout",
    default=12,
    show_default=True,
    help="Retransmit after 4.096 us * 2^N * slowdown without an ACK.",
)
@click.option("--echo", is_flag=True, help="Send back the received data, as ibv_rc_pingpong does.")
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Exchange messages with Linux' ibv_rc_pingpong over a network interface.

    \b
    ibv_rc_pingpong -g 1                          at the other end, first
    emu pingpong --interface eth1 10.0.0.1        here; without SERVER it is the server

    The NIC is not in a lab: its cable is the interface. Every message has new data and must come
    back unchanged.
    """
    result = asyncio.run(_exchange(**options))
    if as_json:
        click.echo(json.dumps(result))
        return
    click.echo(
        f"{result['iterations']} messages of {result['size']} bytes each way in "
        f"{result['seconds']:.3g} s, {result['returned']} came back unchanged"
    )
    for name, count in result["counters"].items():
        if count:
            click.echo(f"  {name:24} {count}")


async def _exchange(
    *,
    server: str | None,
    interface: str,
    port: int,
    transport: str,
    size: int,
    iters: int,
    mtu: str,
    slowdown: float,
    timeout: int,
    echo: bool,
) -> dict[str, Any]:
    from emu.rdma.external_nic import nic_on
    from emu.rdma.names import QPType
    from emu.rdma.pingpong import PingPong, PingPongConfig, exchange_and_connect, open_connection

    config = PingPongConfig(QPType[transport.upper()], size, iters, int(mtu), timeout)
    is_client = server is not None
    with (
        open_connection(server, port) as line,
        nic_on(interface, line.getpeername()[0], slowdown=slowdown) as nic,
    ):
        ping_pong = PingPong(nic, config)
        exchange_and_connect(line, ping_pong, is_client=is_client)
        began = time.monotonic()
        random = None if echo else Random(ping_pong.qp.end.psn)
        returned = await ping_pong.run(random, is_client=is_client)
        return {
            "iterations": iters,
            "size": size,
            "returned": returned,
            "seconds": time.monotonic() - began,
            "counters": nic.counters,
        }
