# SPDX-License-Identifier: Apache-2.0
"""Every allocation of the real ttnn has its line and operation; a kill takes none of that away."""

from __future__ import annotations

import collections
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from clusters import N150, T3K, Cluster
from programs import PYTHON, Program, environment
from tracked import row_of

Start = Callable[..., Program]

PROGRAM = Path(__file__).with_name("origin_program.py")
TILE_BYTES = 32 * 32 * 2
CLUSTERS = pytest.mark.parametrize("cluster", [N150, T3K], ids=["one chip", "eight chips"])


def sites() -> dict[tuple[int, str], tuple[str, int]]:
    """(width, operation): the innermost frame, without its function, and how often."""
    found = {}
    for number, line in enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1):
        if site := re.search(r"# site (\d+)(?: × (\d+))?(?: (ttnn\.\w+))?$", line):
            key = (int(site[1]), site[3] or "ttnn.zeros")
            assert key not in found
            found[key] = (f"{PROGRAM.name}:{number}", int(site[2] or 1))
    # These have no line in any file.
    found[23, "ttnn.zeros"] = ("<string>:4", 1)
    found[24, "ttnn.zeros"] = ("ghost.py:3", 1)
    return found


def only_process(recording: Path) -> dict[str, Any]:
    report = subprocess.run(
        [TT_MEM, "report", recording, "--json"], capture_output=True, check=True
    ).stdout
    (process,) = json.loads(report)["processes"]
    return process


def run_and_report(folder: Path, cluster: Cluster, end: str) -> tuple[int, str, dict[str, Any]]:
    """Exit status, output and report of the program."""
    recording = folder / "run.ttmem"
    done = subprocess.run(
        [TT_MEM, "run", "-o", recording, PYTHON, PROGRAM, str(len(cluster.places)), end],
        capture_output=True,
        text=True,
        env=environment(folder, cluster),
        timeout=PATIENCE_S,
        cwd=folder,
    )
    process = only_process(recording)
    assert process["complete"] and process["history_complete"], done.stderr
    return done.returncode, done.stdout, process


@CLUSTERS
def test_each_call_site_has_its_line_and_operation(folder: Path, cluster: Cluster) -> None:
    status, _, process = run_and_report(folder, cluster, "close")
    assert status == 0
    found: dict[tuple[int, str], tuple[str, int]] = {}
    threads: dict[int, set[str]] = {}
    for origin in process["origins"]:
        if origin["region"] in ("CB", "KERNEL") or not origin["remaining"]:
            continue
        assert origin["device_ids"] == sorted(cluster.places)
        ((size, count),) = origin["sizes"].items()
        width = int(size) // TILE_BYTES
        place = origin["python"][0].rsplit(":", 1)[0]
        known = found.get((width, origin["operation"]), (place, 0))
        assert known[0] == place, (width, origin["python"])
        found[width, origin["operation"]] = (place, known[1] + count)
        threads.setdefault(width, set()).add(origin["thread"])
    assert found == sites()
    assert threads[1] == {"MainThread"} and threads[19] == {"worker-of-19"}
    assert all(name.startswith("ThreadPoolExecutor") for name in threads[20])


@CLUSTERS
def test_after_a_kill_the_recording_has_what_the_allocator_had(
    folder: Path, cluster: Cluster
) -> None:
    status, out, process = run_and_report(folder, cluster, "kill")
    assert status == 128 + 9 and process["signal"] == 9
    truth = json.loads(out)
    assert truth["DRAM"][0] >= len(sites())
    assert [device["id"] for device in process["devices"]] == sorted(cluster.places)
    for device in process["devices"]:
        for region, (blocks, size) in truth.items():
            told = device["regions"][region]
            assert [told["remaining"], told["remaining_footprint_bytes"]] == [blocks, size], region
    remaining = [o for o in process["origins"] if o["region"] not in ("CB", "KERNEL")]
    assert sum(o["remaining"] for o in remaining) == sum(n for n, _ in truth.values())
    assert all(o["python"] for o in remaining if o["remaining"])


SERVER = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import ttnn

kept = []

def work(device):
    new = lambda: ttnn.zeros((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    for _ in range(5):
        kept.append(new())
        kept.append(ttnn.add(kept[-1], kept[-1]))

def serve():
    device = ttnn.open_device(device_id=0)
    work(device)
    ttnn.close_device(device)

def wait_for(*call):
    thread = threading.Thread(target=call[0], args=call[1:], name="server")
    thread.start()
    thread.join()

if sys.argv[1] == "opened in a thread":
    wait_for(serve)
else:
    device = ttnn.open_device(device_id=0)
    if sys.argv[1] == "pool":
        with ThreadPoolExecutor(2, thread_name_prefix="server") as pool:
            list(pool.map(work, [device] * 2))
    else:
        wait_for(work, device)
    ttnn.close_device(device)
"""


@pytest.mark.parametrize("how", ["thread", "pool", "opened in a thread"])
def test_threads_have_lines_while_the_main_thread_does_nothing_but_wait(
    folder: Path, how: str
) -> None:
    program, recording = folder / "server.py", folder / "run.ttmem"
    program.write_text(SERVER)
    subprocess.run(
        [TT_MEM, "run", "-o", recording, PYTHON, program, how],
        capture_output=True,
        check=True,
        env=environment(folder, N150),
        timeout=PATIENCE_S,
        cwd=folder,
    )
    process = only_process(recording)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for origin in process["origins"]:
        assert origin["thread"].startswith("server"), origin
        if origin["region"] == "DRAM":
            assert origin["class"] != "system"
            place = origin["python"][0].rsplit(":", 1)[0]
            counts[place, origin["operation"]] += origin["allocs"]
    times = 10 if how == "pool" else 5
    assert counts == {("server.py:9", "ttnn.zeros"): times, ("server.py:12", "ttnn.add"): times}


WORK = """
def keep(count):
    return [tensor(device, 64, 64) for _ in range(count)]

def work():
    kept.extend(keep(3))
    kept.append(ttnn.add(kept[0], kept[0]))

kept = []
work()
thread = threading.Thread(target=work, name="helper")
thread.start()
thread.join()
kept.extend(map(lambda n: tensor(device, 32, 32 * n), [1, 2]))
"""


def lines_of(row: dict[str, Any] | None) -> list[tuple[Any, ...]]:
    """Of each buffer: where it comes from."""
    if not row:
        return []
    places = []
    for buffer in row["buffers"]:
        origin = row["origins"][buffer["origin"]]
        words = tuple(origin["python"]), origin["operation"], origin["thread"]
        places.append((*words, buffer["bytes"], buffer["region"]))
    return sorted(places)


@CLUSTERS
def test_a_server_that_is_killed_and_restarted_names_the_same_lines(
    start: Start, server: Any, cluster: Cluster
) -> None:
    program = start(cluster)
    opening = "open_device()" if cluster is N150 else "open_mesh(2, 4)"
    program.do(f"device = {opening}\n{WORK}")
    wait_for(lambda: len(lines_of(row_of(server, program.pid))) >= 10, "all to be told")
    before = lines_of(row_of(server, program.pid))
    # The line of the add is that of the code it was told to run.
    files = {place[0][0].split(":")[0] for place in before if place[4] == "DRAM"}
    assert files == {"driver.py", "<test>"}
    assert {"ttnn.add", "ttnn.empty"} <= {place[1] for place in before}
    assert {"MainThread", "helper"} <= {place[2] for place in before}
    for _ in range(2):
        server.kill()
        server.start()
        wait_for(lambda: lines_of(row_of(server, program.pid)) == before, "the same lines")
