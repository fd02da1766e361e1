# SPDX-License-Identifier: Apache-2.0
"""Pages of made-up programs, and the data that is in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from support import run_ok


def export(story: str) -> Path:
    if not Path(f"{story}.ttmem").exists():
        subprocess.run([os.environ["MAKE_STORY"], story, f"{story}.ttmem"], check=True)
    run_ok("export", f"{story}.ttmem", "--format", "html", "-o", f"{story}.html")
    return Path(f"{story}.html")


def data_of(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(data)


def course_values(course: Any) -> list[tuple[int, int, int, int]]:
    """(span, least, most, last) of each span that is told."""
    values, at = [], 0
    for i in range(0, len(course["v"]), 4):
        skip, least, most, last = course["v"][i : i + 4]
        at += skip
        values.append((at, least * course["unit"], most * course["unit"], last * course["unit"]))
        at += 1
    assert at <= course["count"]
    return values
