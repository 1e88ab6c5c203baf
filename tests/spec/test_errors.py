"""Golden errors: each broken spec in `errors/` has a text file with its expected findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import ExitCode, SpecError, UsageError
from emu.spec.model import load_spec

ERRORS = Path(__file__).parent / "errors"
FILES = sorted(ERRORS.glob("*.emu.yml"), key=lambda path: path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".emu.yml"))
def test_a_broken_spec_gets_all_its_findings(
    path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """All findings are reported at once, each with line, column, path, reason and remedy."""
    monkeypatch.chdir(ERRORS)
    monkeypatch.setattr("emu.resources.machine_memory_bytes", lambda: 16_000_000_000)
    with pytest.raises(SpecError) as caught:
        load_spec(Path(path.name))
    golden = path.with_name(path.name.replace(".emu.yml", ".txt"))
    found = "".join(f"{line}\n" for line in caught.value.findings)
    if pytestconfig.getoption("--update-golden"):
        golden.write_text(found)
    assert found == golden.read_text()
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    """The error names the file. It is not a finding about a spec."""
    with pytest.raises(UsageError, match=r"nothing\.emu\.yml: cannot be read \(No such file"):
        load_spec(tmp_path / "nothing.emu.yml")


def test_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    """The error says that the path is a directory."""
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory\)"):
        load_spec(tmp_path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    """A spec is never a megabyte long, so a disk image given by mistake is not parsed."""
    path = tmp_path / "disk.emu.yml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SpecError, match="is longer than 1000000 bytes"):
        load_spec(path)


def test_exponential_aliases_are_refused(tmp_path: Path) -> None:
    """A few lines of aliases can stand for a billion keys, so they are not expanded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    path = tmp_path / "bomb.emu.yml"
    path.write_text("\n".join(lines))
    with pytest.raises(SpecError, match="more than 40000 keys"):
        load_spec(path)


def test_reading_stops_at_too_many_keys(tmp_path: Path) -> None:
    """The finding gives the place of the first key over the limit, far from the end of the text."""
    path = tmp_path / "many.emu.yml"
    path.write_text("".join(f"k{number}: 1\n" for number in range(90_000)))
    over = r"many\.emu\.yml:(39|40)\d{3}:\d+: has more than 40000 keys"
    with pytest.raises(SpecError, match=over):
        load_spec(path)


def test_many_unknown_keys_are_all_found(tmp_path: Path) -> None:
    """Only the first hundred list the known keys. A search for all of them would take minutes."""
    path = tmp_path / "many.emu.yml"
    path.write_text("".join(f"k{number}: 1\n" for number in range(3_000)))
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    findings = [finding for finding in caught.value.findings if "unknown key" in finding]
    assert len(findings) == 3_000
    assert sum("known here are" in finding for finding in findings) == 100


def test_an_escaped_lone_surrogate_is_refused(tmp_path: Path) -> None:
    """YAML can escape a lone surrogate, which cannot be printed."""
    path = tmp_path / "half.emu.yml"
    path.write_text('name: demo\n"\\udc80": 1\n')
    with pytest.raises(
        SpecError, match=r"half\.emu\.yml:2:1: an escape stands for half of a character"
    ):
        load_spec(path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    """Thousands of open brackets give a finding instead of a RecursionError."""
    path = tmp_path / "deep.emu.yml"
    path.write_text("[" * 5000)
    with pytest.raises(SpecError, match="nested too deeply"):
        load_spec(path)
