# SPDX-License-Identifier: Apache-2.0
"""
The wall clock is set while a server runs, by hours and by years. It only labels what people see:
what is live, how old it is and how long a program ran come from a clock that is never set.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from support import (
    IS_SANITIZED,
    PATIENCE_S,
    Server,
    Tracked,
    row_of,
    run,
    run_json,
    wait_for,
    wait_until_exact,
)

STEPPED_CLOCK = os.environ.get("STEPPED_CLOCK", "")
HOUR_S = 3600
YEARS_S = 10 * 365 * 24 * HOUR_S

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="a sanitized program minds a preloaded clock")


class Clock:
    """The wall clock of programs that have it in their environment."""

    def __init__(self, folder: Path):
        self._path = folder / "step"
        self.set(0)
        self.env: dict[str, str | None] = {
            "LD_PRELOAD": STEPPED_CLOCK,
            "CLOCK_STEP": str(self._path),
        }

    def set(self, seconds: int) -> None:
        """So far from the true time. A program that has it mapped sees it at once."""
        with open(self._path, "r+b" if self._path.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))


def assert_times_are_sane(process: dict[str, Any]) -> None:
    """Nothing took longer than this test can have, and nothing ended before it began."""
    assert 0 < process["end_ns"] - process["start_ns"] < 2 * PATIENCE_S * 1e9
    for origin in process["origins"]:
        assert process["start_ns"] <= origin["first_ns"] <= origin["last_ns"] <= process["end_ns"]


STEPS = [-HOUR_S, HOUR_S, -YEARS_S, YEARS_S, -int(time.time()) + 100]
STEP_NAMES = ["hour back", "hour on", "years back", "years on", "to 1970"]


@pytest.mark.parametrize("step_s", STEPS, ids=STEP_NAMES)
@pytest.mark.parametrize("when", ["before it starts", "while it runs"])
def test_a_recording_is_right_although_the_clock_is_set(
    make_server: Callable[[], Server], folder: Path, step_s: int, when: str
) -> None:
    clock = Clock(folder)
    server = make_server()
    (folder / "rec").mkdir()
    server.start("--record", str(folder / "rec"), env=clock.env)
    if when == "before it starts":
        clock.set(step_s)
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)
        if when == "while it runs":
            clock.set(step_s)
        worker.do("alloc 0 0 10 1000")
        worker.do("free 3")
        wait_until_exact(server, worker)
        row = row_of(server, worker.pid)
        assert row and all(0 <= b["age_ns"] < PATIENCE_S * 1e9 for b in row["buffers"])
        assert worker.end() == 0
        wait_for(lambda: not server.status()["clients"], "its end to be known")
    server.stop()

    (file,) = (folder / "rec").glob("*.ttmem")
    (process,) = run_json("report", file)["processes"]
    assert process["complete"] and process["devices"][0]["regions"]["DRAM"]["remaining"] == 17
    assert_times_are_sane(process)
    assert " min" not in run("report", file).lines[0] and " d " not in run("report", file).lines[0]
