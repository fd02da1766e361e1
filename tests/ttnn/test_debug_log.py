# SPDX-License-Identifier: Apache-2.0
"""The debug log of the real ttnn, and the recording that is made of it again."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from basics import PATIENCE_S, TT_MEM
from clusters import N150, T3K, Cluster
from old_logs import rows_of
from programs import PYTHON, environment
from support import run, run_json

SCRIPT = """\
import ttnn

def tensor(device, rows):
    return ttnn.empty((rows, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)

def keep(device):
    KEPT.append(tensor(device, 64))

def step(device):
    a = tensor(device, 32)
    b = ttnn.add(a, a)
    ttnn.deallocate(a)

KEPT = []
device = OPEN
for _ in range(12):
    keep(device)
    step(device)
ttnn.close_mesh_device(device)
"""


@pytest.mark.parametrize(
    ("cluster", "how", "chips"),
    [
        (N150, "ttnn.open_device(device_id=0)", 1),
        (T3K, "ttnn.open_mesh_device(ttnn.MeshShape(2, 4))", 8),
    ],
)
def test_what_goes_out_comes_in_again(
    folder: Path, cluster: Cluster, how: str, chips: int
) -> None:
    script, log = folder / "decode.py", folder / "debug.log"
    first, second = folder / "run.ttmem", folder / "log.ttmem"
    script.write_text(SCRIPT.replace("OPEN", how))
    env = environment(folder, cluster, TT_BUFFER_DEBUG_LOG=str(log), LD_PRELOAD=None)
    done = subprocess.run(
        [TT_MEM, "run", "-o", str(first), PYTHON, str(script)],
        env=env, capture_output=True, timeout=4 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()

    titles: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for block in log.read_text(encoding="utf-8").split("═" * 59 + "\n")[1:]:
        title = block.split("\n", 1)[0]
        titles[title] += 1
        stack = block.split("Call Stack:\n", 1)[1].strip("\n").split("\n")
        if title == "BUFFER ALLOCATED":
            assert len(stack) == 8 and all(re.match(r" {4}\S.*?: \S", line) for line in stack)
            assert stack[0].startswith("    libtt_metal.so: ")
            lines.update(line for line in stack if "decode.py" in line)
    assert titles == {
        "BUFFER ALLOCATED": 36 * chips,
        "BUFFER DEALLOCATED": 24 * chips,
        "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)": 12 * chips,
    }
    assert lines[f"    {script}:7: keep"] == 12 * chips
    assert lines[f"    {script}:11: step"] == 12 * chips

    assert run("import", log, "-o", second).status == 0
    ours, theirs = run_json("report", first), run_json("report", second)
    assert rows_of(theirs) == {
        (0, device, region): row
        for (_, device, region), row in rows_of(ours).items()
        if region not in ("CB", "KERNEL")
    }
    (process,) = theirs["processes"]
    assert process["complete"]
    suspects = [origin for origin in process["origins"] if origin["suspect"]]
    assert {tuple(origin["python"][:2]) for origin in suspects} == {
        ("decode.py:4:tensor", "decode.py:7:keep")
    }
    assert sum(origin["remaining"] for origin in suspects) == 12 * chips
