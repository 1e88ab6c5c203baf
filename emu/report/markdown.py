"""Text for a Markdown page, which must show it exactly as it was written.

Titles and messages come from users' files. Everything that has a meaning in Markdown or HTML is
escaped, so that these files cannot put HTML, links or pictures on the page.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MEANS_SOMETHING = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning in Markdown. An underscore inside a word, as in names of counters, has
none."""


def plain(text: str) -> str:
    """The text in one line, escaped so that Markdown shows it as it is."""
    line = re.sub("[&<>]", lambda match: _HTML[match[0]], " ".join(text.split()))
    return _MEANS_SOMETHING.sub(lambda match: "\\" + match[0], line)


def code(text: str) -> str:
    """The text in one line, as code, between more backticks than it has in a row."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def link(text: str, target: str) -> str:
    """A link to a file beside the page, or to a heading (`#name`) in it."""
    return f"[{plain(text)}]({quote(target, safe='/#')})"
