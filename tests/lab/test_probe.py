"""`emu check` and its probes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli import check as verb
from emu.errors import HostError
from emu.lab import namespace, probe
from emu.lab.command import missing_program
from emu.lab.ipc.messages import Failure
from emu.lab.namespace import namespaces_remedy
from emu.lab.probe import Probe, ProbeResult, require, run_probe

GOOD = ProbeResult("veth", "every lab", True, "", "", "sudo modprobe veth")
WITHOUT = ProbeResult("eBPF marker", "marking", False, "not permitted", "the shim marks", "be root")
LACKING = ProbeResult("OpenSM", "fabric: ib", False, "opensm not installed", "", "apt-get it")


def _check(
    monkeypatch: pytest.MonkeyPatch, findings: list[ProbeResult], *words: str
) -> tuple[int, str]:
    monkeypatch.setattr(verb, "run_probes", lambda: findings)
    done = CliRunner().invoke(verb.command, words)
    return done.exit_code, done.output


def test_present_or_replaced_features_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output names the replacement and how to get the feature itself."""
    code, output = _check(monkeypatch, [GOOD, WITHOUT])
    assert code == 0
    assert output.splitlines() == [
        "ok       veth         for every lab",
        "without  eBPF marker  for marking",
        "         not permitted",
        "         used instead: the shim marks",
        "         to get it: be root",
    ]


def test_a_missing_requirement_is_exit_code_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output has the command that installs it."""
    code, output = _check(monkeypatch, [GOOD, LACKING])
    assert code == 3
    assert output.splitlines()[1:] == [
        "MISSING  OpenSM  for fabric: ib",
        "         opensm not installed",
        "         to get it: apt-get it",
    ]


def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = _check(monkeypatch, [GOOD, LACKING], "--json")
    document = json.loads(output)
    assert code == 3
    assert document["ok"] is False
    assert [finding["required"] for finding in document["findings"]] == [True, True]


def test_a_probe_without_complaint_is_present() -> None:
    assert run_probe(Probe("x", "y", lambda: "")).present
    assert run_probe(Probe("x", "y", lambda: "no x")).missing == "no x"


def test_require_names_the_probe_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check runs before a lab is started."""
    probes = (Probe("ibsim", "ib", lambda: "ibsim not installed", remedy="apt-get it"),)
    monkeypatch.setattr(probe, "PROBES", probes)
    with pytest.raises(HostError, match=r"^ibsim: ibsim not installed; apt-get it$"):
        require("ibsim")


@pytest.mark.parametrize(
    ("user", "remedy"),
    [(0, "apt-get install ibsim-utils"), (1000, "sudo apt-get install ibsim-utils")],
)
def test_a_missing_program_is_named_with_its_package(
    user: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH is empty. Root needs no sudo, which small systems do not have."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("os.geteuid", lambda: user)
    finding = run_probe(next(p for p in probe.PROBES if p.name == "ibsim"))
    assert finding.missing == "ibsim not installed"
    assert finding.remedy == remedy


@pytest.mark.parametrize(
    ("user", "has_clang", "says"),
    [
        (1000, True, "run the lab as root (`sudo emu ...`), only root may load eBPF; this is"),
        (1000, False, "sudo apt-get install clang; then run the lab as root (`sudo emu ...`)"),
        (0, False, "apt-get install clang"),
        (0, True, "if this is a container, start it with --privileged"),
    ],
)
def test_the_remedy_for_ebpf_depends_on_the_user(
    user: int, has_clang: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy installs only missing packages and asks for root only if the user is not root."""
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(probe, "is_installed", lambda program: has_clang)
    monkeypatch.setattr(Path, "exists", lambda path: True)
    (marker,) = (p for p in probe.PROBES if p.name == "eBPF marker")
    assert marker.user_remedy().startswith(says)


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (0, "the program tshark is missing; apt-get install tshark"),
        (1000, "the program tshark is missing; sudo apt-get install tshark"),
    ],
)
def test_remedies_for_root_have_no_sudo(
    user: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds for errors from inside a lab, where every user is root."""
    monkeypatch.setattr("os.geteuid", lambda: user)
    error = missing_program("tshark")
    assert str(error) == str(Failure.of(error).error()) == said


def test_remedies_for_root_of_a_user_namespace_have_sudo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An ordinary user is root only inside the user namespace."""
    uid_map = tmp_path / "uid_map"
    uid_map.write_text("         0       1000          1\n")
    monkeypatch.setattr("emu.privilege._UID_MAP", uid_map)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert str(missing_program("tc")).endswith("; sudo apt-get install iproute2")


def test_check_notes_what_needs_an_administrator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note appears once, and only if a remedy begins with sudo."""
    lacking = ProbeResult("OpenSM", "fabric: ib", False, "no opensm", "", "sudo apt-get install it")
    note = "Commands with sudo need an administrator; you can run the others yourself.\n"
    assert _check(monkeypatch, [GOOD, lacking])[1].endswith(note)
    assert note not in _check(monkeypatch, [GOOD, LACKING])[1]


def test_every_probe_ends_with_a_finding() -> None:
    """No probe raises an exception on any machine, and each missing feature has a remedy."""
    for finding in probe.run_probes():
        assert finding.present or finding.remedy


@pytest.mark.parametrize(
    ("sysctls", "remedy"),
    [
        (
            {"kernel/apparmor_restrict_unprivileged_userns": "1", "user/max_user_namespaces": "9"},
            "run as root, or: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            {"kernel/unprivileged_userns_clone": "0", "user/max_user_namespaces": "0"},
            "run as root, or: sudo sysctl -w kernel.unprivileged_userns_clone=1 "
            "user.max_user_namespaces=15000",
        ),
        ({"kernel/apparmor_restrict_unprivileged_userns": "0"}, "run as root"),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(
    sysctls: dict[str, str], remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cases are Ubuntu 24.04, a hardened Debian, and a machine without such settings."""
    for name, value in sysctls.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{value}\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert namespaces_remedy(tmp_path) == remedy


def test_the_remedy_in_a_container_is_privileged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a container without --privileged cannot make namespaces."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert namespaces_remedy(tmp_path) == "if this is a container, start it with --privileged"
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "max_pid_namespaces").write_text("0\n")
    assert namespaces_remedy(tmp_path) == "sysctl -w user.max_pid_namespaces=15000"


def test_a_lab_without_namespaces_fails_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ubuntu's default settings prevent the start of a lab in this way."""
    monkeypatch.setattr(namespace, "namespaces_allowed", lambda: False)
    monkeypatch.setattr(namespace, "namespaces_remedy", lambda: "run as root")
    died = subprocess.Popen(["false"], stderr=subprocess.PIPE)
    told = namespace._did_not_start(died)
    assert isinstance(told, HostError)
    assert str(told) == "this machine does not let you make namespaces; run as root"
