# SPDX-License-Identifier: Apache-2.0
"""Text that a program chose itself, for a terminal or a file: names, contexts, files, source."""

from __future__ import annotations

import re
from typing import Iterable

# The rule of src/base/text.h: control characters, separators of lines, and what changes the
# direction of text. A lone surrogate stands for a byte that is not UTF-8.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _bytes_of(match: re.Match[str]) -> str:
    try:
        found = match[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        found = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in found)


def plain(text: str) -> str:
    """One line that acts on nothing: what could is written as its bytes, \\xNN."""
    return _ACTING.sub(_bytes_of, text)


def plain_lines(lines: Iterable[str]) -> str:
    """These lines, and no others that are inside of them."""
    return "\n".join(plain(line) for line in lines)
