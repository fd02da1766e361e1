# SPDX-License-Identifier: Apache-2.0
"""
The wall clock is set while a server runs, by hours and by years. It only labels what people see:
what is live, how old it is and how long a program ran come from a clock that is never set.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from containers import child_of
from support import (
    IS_SANITIZED,
    PATIENCE_S,
    TRACKED_WORKER,
    Server,
    Tracked,
    clean_env,
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


class InTimeNamespace(Tracked):
    """A worker whose monotonic clock is so many seconds ahead of the server's, or behind it."""

    def __init__(self, server: Server, ahead_s: int):
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["unshare", "--time", f"--monotonic={ahead_s}", "--fork", TRACKED_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(TTMEM_SOCKET=server.socket, TT_ALLOC_TRACKING_ENABLED="1"),
        )
        self.truth = {}
        self.last = {}

    @property
    def pid(self) -> int:
        return child_of(self.process.pid)


def has_time_namespaces() -> bool:
    command = ["unshare", "--time", "--monotonic=1", "--fork", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("is_ahead", [True, False], ids=["ahead", "behind"])
def test_a_program_in_a_time_namespace_has_ages_by_the_servers_clock(
    server: Server, is_ahead: bool
) -> None:
    if not has_time_namespaces():
        pytest.skip("needs to make time namespaces")
    began_ns = time.monotonic_ns()
    ahead_s = began_ns // 2_000_000_000 * (1 if is_ahead else -1)  # half of the time since boot
    with InTimeNamespace(server, ahead_s) as worker:
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)
        for _ in range(2):  # as events, and in a resync with another server
            row = row_of(server, worker.pid)
            assert row
            passed_ns = time.monotonic_ns() - began_ns
            ages = sorted(buffer["age_ns"] for buffer in row["buffers"])
            assert ages[9] < ages[10] and ages[-1] <= passed_ns
            server.kill()
            server.start()
            wait_until_exact(server, worker)


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
