"""The pages of docs/, README and CONTRIBUTING: links, paths, make targets and the site."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from textwrap import indent

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from emu.cli.main import cli
from tests.support.doc_blocks import PAGES, ROOT

WRITTEN = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
_PATH = re.compile(r"(?:emu|tests|topologies|traffic|examples|docs|vagrant)/[\w./*-]+")
_OF_THE_SITE = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Loaded(HTMLParser):
    """The addresses that a browser loads for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(_OF_THE_SITE.get(tag, ""))
        if address and dict(attrs).get("rel") != "canonical":
            self.addresses.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a dead link, a dead anchor or a page
    without a menu entry is an error."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run([*build, str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    """Neither pages nor style sheets load fonts, scripts, styles or pictures."""
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text())
        assert [a for a in loaded.addresses if a.startswith(("http", "//"))] == [], page.name
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s)[\"']?(?:https?:)?//", sheet.read_text()) == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_backticks_exist(page: Path) -> None:
    """A star in a path of the source tree stands for any name."""
    named = [path for code in _code(page) for path in _PATH.findall(code)]
    missing = [path for path in named if not any(ROOT.glob(path.rstrip("./")))]
    assert [path for path in missing if "NAME" not in path] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_pages_outside_the_site_exist(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/extending.md"])
def test_make_targets_exist(page: str) -> None:
    targets = re.findall(r"\bmake ([a-z-]+)", " ".join(_code(ROOT / page)))
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {*targets} <= {*known}


def test_the_table_of_the_readme_is_what_the_demo_prints(tmp_path: Path) -> None:
    demo = ROOT / "topologies/incast.emu.yml"
    words = ("compare", str(demo), "--clock", "virtual", "--quiet", "--out", str(tmp_path))
    printed = CliRunner().invoke(cli, words).stdout
    table = printed.partition("The same workload on each fabric\n")[2].partition("\n- ")[0]
    assert indent(table, "    ") in (ROOT / "README.md").read_text()


def _code(page: Path) -> Iterator[str]:
    """The text of inline code and of code blocks."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        if token.type in ("fence", "code_block"):
            yield token.content
        yield from (child.content for child in token.children or () if child.type == "code_inline")
