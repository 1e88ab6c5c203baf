"""Text for a page in Markdown, where it must show as it was written.

Titles and messages come from users' files: whatever means something in Markdown or HTML is
escaped, so that nobody else's HTML, link or picture is on a page of ours.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MEANS_SOMETHING = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
"""An underscore inside of a word, as counters' names have, means nothing."""


def plain(text: str) -> str:
    """The text in one line, which Markdown shows as it is."""
    line = re.sub("[&<>]", lambda match: _HTML[match[0]], " ".join(text.split()))
    return _MEANS_SOMETHING.sub(lambda match: "\\" + match[0], line)


def code(text: str) -> str:
    """The text in one line, as code: between more backticks than stand together in it."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def link(text: str, target: str) -> str:
    """A link to a file beside the page, or to a heading (`#name`) in it."""
    return f"[{plain(text)}]({quote(target, safe='/#')})"
