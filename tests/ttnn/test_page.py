# SPDX-License-Identifier: Apache-2.0
"""The page of a real run: it names the line, and its banks are as the allocator says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clusters import N150, T3K, Cluster
from commands import TT_MEM
from pages import course_values, data_of
from programs import PYTHON, environment
from support import run_ok

PROGRAM = """
import json
import ttnn

KEPT = []


def keep(device, to):
    KEPT.append(ttnn.zeros((256, 256), device=device, layout=ttnn.TILE_LAYOUT, memory_config=to))


def view(device, kind):
    seen = ttnn.get_memory_view(device, kind)
    free = seen.largest_contiguous_bytes_free_per_bank
    return [seen.num_banks, seen.total_bytes_allocated_per_bank, free]


device = OPEN
for step in range(40):
    keep(device, ttnn.DRAM_MEMORY_CONFIG)
    keep(device, ttnn.L1_MEMORY_CONFIG)
for i in range(10, 50, 3):  # holes
    ttnn.deallocate(KEPT[i])
kinds = (ttnn.BufferType.DRAM, ttnn.BufferType.L1)
print(json.dumps({kind.name: view(device, kind) for kind in kinds}))
"""
MESH = "ttnn.open_mesh_device(ttnn.MeshShape(2, 4))"


def page_of(folder: Path, cluster: Cluster, opening: str) -> tuple[Any, Any]:
    (folder / "program.py").write_text(PROGRAM.replace("OPEN", opening), encoding="utf-8")
    done = subprocess.run(
        [TT_MEM, "run", "-o", "x.ttmem", PYTHON, "program.py"],
        env=environment(folder, cluster),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    run_ok("export", folder / "x.ttmem", "--format", "html", "-o", folder / "x.html")
    truth = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return data_of(folder / "x.html"), truth


@pytest.mark.parametrize(
    "cluster, opening", [(N150, "ttnn.open_device(device_id=0)"), (T3K, MESH)], ids=["chip", "mesh"]
)
def test_line_course_and_banks(folder: Path, cluster: Cluster, opening: str) -> None:
    page, truth = page_of(folder, cluster, opening)
    (process,) = page["processes"]
    assert process["complete"] and process["lost"] == 0
    frames = page["frames"]
    for name in ("DRAM", "L1"):
        leak = next(origin for origin in process["origins"] if origin["region"] == name)
        line = frames[leak["stack"][-2]]
        assert line[0] == "keep (program.py:9)" and line[3].startswith("KEPT.append(ttnn.zeros(")
        assert leak["op"] == "ttnn.zeros" and leak["native"]

        region = process["devices"][0]["regions"][name]
        assert max(most for _, _, most, _ in course_values(region["course"])) == region["peak"]
        bank = region["bank"]
        assert bank["gaps"] > 3
        outside = bank["bytes"] - (bank["end"] - bank["start"])
        banks, held, largest = truth[name]
        assert (bank["banks"], bank["held"]) == (banks, held)
        assert max(outside, bank["gap"]) == largest
    # Chips of a mesh with the same history are told once.
    alike = [device for device in process["devices"] if "like" in device]
    assert len(alike) == len(process["devices"]) - 1
