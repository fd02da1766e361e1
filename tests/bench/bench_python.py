# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs: a call, tracked and not, and its import. Numbers, no verdict.

usage: bench_python.py TT_MEM PACKAGE [ROUNDS [PYTHON_VERSION]]

The calls are made on a tensor of the real ttnn on a mock device, in thread CPU time; the import in
CPU time of a process that does nothing else. A cell is the median [least–most] of its rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "ttnn"), str(HERE.parent / "integration")]

import provision  # noqa: E402
from clusters import N150  # noqa: E402
from programs import environment  # noqa: E402

CALLS = """
import json, sys, time, timeit, traceback
import ttmem, ttnn

device = ttnn.open_device(device_id=0)
tensor = ttnn.zeros((32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
kept = ttmem.context("kept")

def deep(n, call):
    return deep(n - 1, call) if n else call()

calls = {
    "with ttmem.context('layer'):": "with ttmem.context('layer'): pass",
    "the same with an object that is kept": "with kept: pass",
    "ttmem.track_buffer(tensor, name=)": "ttmem.track_buffer(tensor, name='weights')",
    "the same, name and context": "ttmem.track_buffer(tensor, name='weights', context='init')",
    "ttmem.mark('step')": "ttmem.mark('step')",
    "ttmem.is_active()": "ttmem.is_active()",
}
out = {}
for name, call in calls.items():
    best = timeit.repeat(call, globals=globals(), number=5000, repeat=7, timer=time.thread_time)
    out[name] = sorted(best)[3] / 5000 * 1e9
best = timeit.repeat("deep(20, traceback.extract_stack)", globals=globals(), number=100, repeat=7,
                     timer=time.thread_time)
out["for comparison: traceback.extract_stack(), 20 frames"] = sorted(best)[3] / 100 * 1e9
print("\\n" + json.dumps(out))
"""
IMPORT = """
import time
begin = time.process_time()
import ttmem
print(time.process_time() - begin)
"""


def cell(values: list[float], unit: float, digits: int) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return " ".join(
        [f"{middle / unit:.{digits}f}", f"[{least / unit:.{digits}f}–{most / unit:.{digits}f}]"]
    )


def main() -> int:
    tt_mem, package = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    version = sys.argv[4] if len(sys.argv) > 4 else "3.12"
    try:
        python = str(provision.environment(version))
    except provision.Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory(prefix="ttm-") as folder:
        env = environment(
            Path(folder),
            N150,
            PYTHONPATH=package,
            TTMEM_LIBRARY=os.path.dirname(tt_mem),
            PYTHONDONTWRITEBYTECODE=None,
            PYTHONPYCACHEPREFIX=folder,
            XDG_RUNTIME_DIR=folder,
        )

        def run(code: str, *before: str) -> str:
            command = [*before, python, "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
            return done.stdout.splitlines()[-1]

        run(IMPORT)  # compiled once, as an installed package is
        imports = [float(run(IMPORT)) for _ in range(rounds * 3)]
        run_tracked = [tt_mem, "run", "--no-record"]
        tracked = [json.loads(run(CALLS, *run_tracked)) for _ in range(rounds)]
        untracked = [json.loads(run(CALLS)) for _ in range(rounds)]
    print(f"Python {version}, {rounds} rounds\n")
    print("| ns of thread CPU | tracked | not tracked |\n|---|---|---|")
    for name in tracked[0]:
        cells = [cell([row[name] for row in rows], 1, 0) for rows in (tracked, untracked)]
        print(f"| `{name}` | {' | '.join(cells)} |")
    print(f"\nimport ttmem: {cell(imports, 1e-3, 1)} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
