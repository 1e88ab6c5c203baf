"""What MkDocs changes of a page before it is rendered (mkdocs.yml, `hooks`).

In a table GitHub wants a bar in code escaped, and MkDocs does not: `int \\| None` is one cell for
the one, and has a backslash for the other. Pages are written for GitHub.
"""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    return re.sub(r"^\|.*$", _unescaped, markdown, flags=re.MULTILINE)


def _unescaped(row: re.Match[str]) -> str:
    return re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), row[0])
