# SPDX-License-Identifier: Apache-2.0
"""What tracking an allocation costs next to heaptrack and memray, on one load in one run.

usage: bench_peers.py TT_MEM HOOK FAKE_METAL PYTHON [ROUNDS [PAIRS]]

The load is a Python loop that allocates and frees through eight frames, over a C library by
ctypes, which lets go of the GIL as ttnn does. For heaptrack and memray that is Python's own
malloc, and what is allocated memory of the host; for tt-mem it is the TT-Metal of the tests, and
memory of a device. So each tool is asked for the same of its own kind of memory: a stack for each
allocation, and a file. PYTHON is one with memray; tools that are not there are left out.

CPU time is that of all processes of a tool, servers and compressors too, less that of the same loop
without the tool; tools take turns. Events are allocations and frees as the tool has counted them.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DEPTH = 8
BYTES = 4096


def load(kind: str, library: str, pairs: int) -> None:
    """Runs in the process that is tracked."""
    if kind == "device":
        metal = ctypes.CDLL(library)
        metal.fake_alloc.restype = ctypes.c_void_p
        metal.fake_alloc.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_bool)
        metal.fake_free.argtypes = (ctypes.c_void_p,)
        metal.fake_open(1)

        def once() -> None:
            metal.fake_free(metal.fake_alloc(0, BYTES, False))

    else:
        # Not libc itself: memray sees the calls of modules that were linked with it.
        python = ctypes.CDLL(None)
        python.PyMem_RawMalloc.restype = ctypes.c_void_p
        python.PyMem_RawMalloc.argtypes = (ctypes.c_size_t,)
        python.PyMem_RawFree.argtypes = (ctypes.c_void_p,)

        def once() -> None:
            python.PyMem_RawFree(python.PyMem_RawMalloc(BYTES))

    def down(depth: int) -> None:
        if depth > 0:
            down(depth - 1)
        else:
            once()

    for _ in range(pairs):
        down(DEPTH - 3)
    if kind == "device":
        metal.fake_close()


def cpu_of(command: list[str], env: dict[str, str] | None = None) -> tuple[float, str]:
    """Seconds of CPU of a command and all that it has waited for; and its output."""
    before = os.times()
    done = subprocess.run(
        command,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    after = os.times()
    if done.returncode != 0:
        sys.exit(f"{command} failed:\n{done.stdout}")
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system, done.stdout


class Tool:
    """One way to run the load, and what came of it."""

    kind = "host"

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.file = folder / re.sub(r"\W+", "-", name)
        self.costs: list[float] = []
        self.analyses: list[float] = []
        self.size = 0
        self.events = 0
        self.lost = 0

    def wrap(self, command: list[str]) -> list[str]:
        raise NotImplementedError

    def look(self) -> tuple[float, int]:
        """CPU of the analysis, and how many events there were; sets 'size'."""
        raise NotImplementedError


class Heaptrack(Tool):
    def wrap(self, command: list[str]) -> list[str]:
        return ["heaptrack", "-o", str(self.file), *command]

    def look(self) -> tuple[float, int]:
        (file,) = self.file.parent.glob(self.file.name + ".*")
        self.size = file.stat().st_size
        cpu, text = cpu_of(["heaptrack_print", str(file)])
        file.unlink()
        calls = re.search(r"calls to allocation functions: (\d+)", text)
        assert calls
        return cpu, 2 * int(calls[1])


class Memray(Tool):
    def __init__(self, name: str, folder: Path, python: str, options: list[str]) -> None:
        super().__init__(name, folder)
        self.python = python
        self.options = options

    def wrap(self, command: list[str]) -> list[str]:
        run = [self.python, "-m", "memray", "run", "-q", "-f", *self.options]
        return [*run, "-o", str(self.file), *command[1:]]

    def look(self) -> tuple[float, int]:
        self.size = self.file.stat().st_size
        command = [self.python, "-m", "memray"]
        cpu, text = cpu_of([*command, "stats", str(self.file)])
        found = re.search(r"Total allocations:\s+(\d+)", text)
        assert found
        return cpu, 2 * int(found[1])


class Ours(Tool):
    kind = "device"

    def __init__(self, name: str, folder: Path, tt_mem: str) -> None:
        super().__init__(name, folder)
        self.tt_mem = tt_mem
        self.file = self.file.with_suffix(".ttmem")

    def wrap(self, command: list[str]) -> list[str]:
        return [self.tt_mem, "run", "-o", str(self.file), "--", *command]

    def look(self) -> tuple[float, int]:
        self.size = self.file.stat().st_size
        cpu, text = cpu_of([self.tt_mem, "report", str(self.file)])
        found = re.search(r"([\d,]+) allocations, ([\d,]+) frees, (nothing|[\d,]+) lost", text)
        assert found, text
        words = (word.replace(",", "").replace("nothing", "0") for word in found.groups())
        *counts, lost = map(int, words)
        self.lost = max(self.lost, lost)
        return cpu, sum(counts)


def row(tool: Tool) -> str:
    def cell(values: list[float], form: str) -> str:
        low, high = min(values), max(values)
        return f"{statistics.median(values):{form}} [{low:{form}}–{high:{form}}]"

    size = tool.size / tool.events
    return (
        f"| {tool.name} | {cell(tool.costs, '.0f')} | {size:.2f} "
        f"| {cell(tool.analyses, '.2f')} | {tool.events:,} | {tool.lost:,} |"
    )


def main(tt_mem: str, hook: str, metal: str, python: str, rounds: int, pairs: int) -> None:
    assert Path(hook).exists()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools: list[Tool] = [Ours("tt-mem, Python and native frames", folder, tt_mem)]
        if shutil.which("heaptrack"):
            tools.append(Heaptrack("heaptrack, native frames", folder))
        has_memray = subprocess.run([python, "-c", "import memray"], check=False).returncode == 0
        if has_memray:
            tools.append(Memray("memray, Python frames", folder, python, []))
            tools.append(Memray("memray, Python and native frames", folder, python, ["--native"]))
        for _ in range(rounds):
            for tool in tools:
                command = [python, __file__, "--load", tool.kind, metal, str(pairs)]
                bare = cpu_of(command)[0]
                spent = cpu_of(tool.wrap(command))[0]
                seconds, tool.events = tool.look()
                tool.costs.append((spent - bare) * 1e9 / tool.events)
                tool.analyses.append(seconds * 1e6 / tool.events)
    heads = ("", "ns of CPU an event", "bytes an event", "s to analyse a million", "events", "lost")
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|")
    for tool in tools:
        print(row(tool))


if __name__ == "__main__":
    if sys.argv[1] == "--load":
        load(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main(
            *sys.argv[1:5],
            int(sys.argv[5]) if len(sys.argv) > 5 else 5,
            int(sys.argv[6]) if len(sys.argv) > 6 else 500000,
        )
