# SPDX-License-Identifier: Apache-2.0
"""What each test is known to leave behind, by origin: a file that is kept with the tests.

An origin is known by file, function, operation, region, name and context. Its line is not a part of
that: it moves with every edit above it. Nor are the class of a method, which Python 3.10 does not
know, and comprehensions, which are functions up to 3.11: one file serves all versions.
"""

from __future__ import annotations

import json
import os
from typing import Any, Iterable

from ttmem._snapshot import Change, Origin

SCHEMA = "ttmem/baseline/1"

# By origin: how many buffers and how many bytes of footprint.
Left = dict[str, tuple[int, int]]


_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")


def _place(origin: Origin) -> str:
    for where in origin.python:
        file, _, rest = where.partition(":")
        function = rest.rpartition(":")[2].rpartition(".")[2]
        if function not in _COMPREHENSIONS:
            return f"{file}:{function}" if function else file
    return origin.line


def origin_key(change: Change) -> str:
    origin = change.origin
    words = (_place(origin), origin.operation, origin.region, origin.name, origin.context)
    return " ".join(word for word in words if word)


def left_of(changes: Iterable[Change]) -> Left:
    sums: Left = {}
    for change in changes:
        count, size = sums.get(origin_key(change), (0, 0))
        sums[origin_key(change)] = count + change.count, size + change.footprint_bytes
    return sums


def grown(known: Left, changes: Iterable[Change]) -> list[str]:
    """Origins that take more than is known of them."""
    return [k for k, (_, size) in left_of(changes).items() if size > known.get(k, (0, 0))[1]]


def read(path: str) -> dict[str, Left]:
    """By test. Raises ValueError or OSError."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"it is no baseline: its schema is not {SCHEMA!r}")
    try:
        return {
            str(test): {
                str(k): (int(v["count"]), int(v["footprint_bytes"])) for k, v in left.items()
            }
            for test, left in document["tests"].items()
        }
    except (AttributeError, KeyError, TypeError) as failure:
        raise ValueError(f"it is no baseline: {failure}") from None


def write(path: str, tests: dict[str, Left]) -> None:
    """In place of what was there, once it is whole; tests that leave nothing are left out."""
    rows: dict[str, Any] = {
        test: {
            key: {"count": count, "footprint_bytes": size}
            for key, (count, size) in sorted(left.items())
        }
        for test, left in sorted(tests.items())
        if left
    }
    part = f"{path}.{os.getpid()}.new"
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"schema": SCHEMA, "tests": rows}, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(part, path)
