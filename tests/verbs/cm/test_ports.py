"""Ports: who has them, and who listens there."""

from __future__ import annotations

import errno

import pytest

from emu.verbs.cm.ip_service import PortSpace
from emu.verbs.cm.ports import Ports
from emu.verbs.objects import Refused

TCP, UDP = PortSpace.TCP, PortSpace.UDP


@pytest.fixture
def ports() -> Ports[str]:
    return Ports()


def refuses(error: pytest.ExceptionInfo[Refused]) -> bool:
    return error.value.errno == errno.EADDRINUSE


def test_port_has_one_owner(ports: Ports[str]) -> None:
    ports.take("one", TCP, 7)
    with pytest.raises(Refused) as error:
        ports.take("other", TCP, 7)
    assert refuses(error)
    assert ports.take("other", UDP, 7) == 7


def test_port_is_free_after_its_owner(ports: Ports[str]) -> None:
    ports.take("one", TCP, 7)
    ports.release("one", TCP, 7)
    assert ports.take("other", TCP, 7) == 7


def test_owners_that_share_a_port_cannot_listen(ports: Ports[str]) -> None:
    ports.take("one", TCP, 7, shares=True)
    ports.take("other", TCP, 7, shares=True)
    with pytest.raises(Refused) as error:
        ports.listen("one", TCP, 7)
    assert refuses(error)


def test_listener_shares_no_port(ports: Ports[str]) -> None:
    ports.take("one", TCP, 7, shares=True)
    ports.listen("one", TCP, 7)
    with pytest.raises(Refused) as error:
        ports.take("other", TCP, 7, shares=True)
    assert refuses(error)


def test_listener_ends_with_its_owner(ports: Ports[str]) -> None:
    ports.take("one", TCP, 7)
    ports.listen("one", TCP, 7)
    assert ports.listener(TCP, 7) == "one"
    assert ports.listener(UDP, 7) is None
    ports.release("one", TCP, 7)
    assert ports.listener(TCP, 7) is None


def test_free_ports_differ_and_come_again_late(ports: Ports[str]) -> None:
    first = ports.take("one", TCP, 0)
    ports.release("one", TCP, first)
    second = ports.take("other", TCP, 0)
    assert first != second
    assert {first, second} <= set(range(32768, 61000))
