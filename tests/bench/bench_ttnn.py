# SPDX-License-Identifier: Apache-2.0
"""What tracking adds to a decode loop of real ttnn operations on a mock device.

usage: bench_ttnn.py TT_MEM HOOK [ROUNDS [PYTHON_VERSION]]

Prints Markdown tables; judges nothing. Where there is no ttnn it exits with 77 and says why.

Two processes with the same program differ by more than tracking costs, so both are in one: blocks
of operations in turns with it and as if there was no hook at all (bench_slots.c), and the median of
the differences of neighbours. The
server and the helper thread are added: their CPU for a loop in which everything is tracked. The
null test is the same with blocks that do not differ. The floor is what the loop's thread takes
with tests/bench/floor_hook.c in place of the hook.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ttnn"))

import provision  # noqa: E402
from clusters import N150, T3K, Cluster  # noqa: E402

LOOP = Path(__file__).with_name("ttnn_loop.py")
PAIRS = 1000
STEADY_BLOCKS = 4000  # 56,000 allocations
STARTS = 9

# What is captured with each allocation, and whether it is recorded.
ROWS = {
    "no stacks": ({"TTMEM_PYTHON_FRAMES": "0", "TTMEM_NATIVE_FRAMES": "0"}, False),
    "Python frames": ({"TTMEM_NATIVE_FRAMES": "0"}, False),
    "Python and native frames": ({}, False),
    "both, and recorded": ({}, True),
}


class Bench:
    """The commands, a folder, and the ttnn to run."""

    def __init__(
        self, tt_mem: str, hook: str, version: str, folder: Path, cluster: Cluster = N150
    ):
        self.tt_mem = tt_mem
        self.hook = hook
        self.python = provision.environment(version)
        self.folder = folder
        self.socket = str(folder / "s")
        self.chips = len(cluster.places)
        (folder / "cluster.yaml").write_text(cluster.description())

    def env(self, **extra: str) -> dict[str, str]:
        cache = provision.cache_folder() / f"kernels-{provision.RELEASE}-{provision.RECIPE}"
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder),
            "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(self.folder / "cluster.yaml"),
            "TT_METAL_CACHE": str(cache),
            "TT_LOGGER_LEVEL": "fatal",
            "LOGURU_LEVEL": "ERROR",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CHIPS": str(self.chips),
            "BENCH_SLOTS": str(Path(self.tt_mem).parent / "tests" / "bench" / "libbench-slots.so"),
            **extra,
        }

    def hooked(self, **extra: str) -> dict[str, str]:
        return self.env(
            LD_PRELOAD=self.hook,
            TTMEM_SOCKET=self.socket,
            TT_ALLOC_TRACKING_ENABLED="1",
            **extra,
        )

    @contextlib.contextmanager
    def server(self, *args: str) -> Iterator[int]:
        """A server that listens; its pid."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = str(self.folder / "notify")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            notify.bind(path)
            notify.settimeout(60)
            server = subprocess.Popen(
                [self.tt_mem, "serve", "--socket", self.socket, "--no-legacy", *args],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "NOTIFY_SOCKET": path},
            )
            notify.recv(64)
        try:
            yield server.pid
        finally:
            server.terminate()
            server.wait()

    def loop(self, env: dict[str, str], *args: str) -> dict[str, Any]:
        """What the loop has measured, and what the server says of it at its end."""
        command = [str(self.python), str(LOOP), "tracked", *args]
        with subprocess.Popen(
            command, env=env, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            result = json.loads(process.stdout.readline())
            result["client"] = self.client()
        return result

    def floor(self) -> dict[str, Any]:
        """The same without a tracker; nobody's CPU but the loop's counts."""
        floor = Path(self.tt_mem).parent / "tests" / "bench" / "libfloor-hook.so"
        numbers = [PAIRS, 1, 1, os.getpid()]
        done = subprocess.run(
            [str(self.python), str(LOOP), "tracked", *map(str, numbers)],
            env=self.env(LD_PRELOAD=str(floor)),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[0])

    def client(self) -> dict[str, Any]:
        done = subprocess.run(
            [self.tt_mem, "status", "--json", "--socket", self.socket],
            stdout=subprocess.PIPE,
            check=True,
        )
        (client,) = json.loads(done.stdout)["clients"]
        return client


def spread(values: list[float], form: str = "{:.2f}") -> str:
    """Median and range."""
    few = [form.format(v) for v in (statistics.median(values), min(values), max(values))]
    return f"{few[0]} [{few[1]}–{few[2]}]"


def percent(pairs: list[list[float]]) -> list[float]:
    return [100 * difference / plain for difference, plain in pairs]


class Row:
    """What is measured with one choice of what is captured, a process for each round."""

    def __init__(self) -> None:
        self.own: list[float] = []
        self.null: list[float] = []
        self.helper: list[float] = []
        self.server: list[float] = []
        self.cost_ns: list[float] = []
        self.plain_us: list[float] = []

    def add(self, result: dict[str, Any]) -> None:
        operations = result["operations"]
        self.own += percent(result["tracked"])
        self.null += percent(result["null"])
        self.helper += [100 * part["helper"] for part in result["steady"]]
        self.server += [100 * part["server"] for part in result["steady"]]
        self.cost_ns += [difference / operations for difference, _ in result["tracked"]]
        self.plain_us += [plain / operations / 1000 for _, plain in result["tracked"]]

    def text(self, is_floor: bool) -> str:
        cells = [spread(self.own), spread(self.null)]
        if is_floor:
            cells += ["", "", ""]
        else:
            together = [sum(parts) for parts in zip(self.own, self.helper, self.server)]
            cells += [spread(self.helper), spread(self.server), spread(together)]
        return " | ".join([*cells, spread(self.cost_ns, "{:.0f}")])


def bench_rows(bench: Bench, rounds: int) -> None:
    """Round by round: a process differs from the next by where its code and data happen to lie."""
    rows = {name: Row() for name in ("floor", *ROWS)}
    events = lost = size = 0
    for number in range(rounds):
        rows["floor"].add(bench.floor())
        for name, (env, is_recorded) in ROWS.items():
            recordings = bench.folder / f"recordings-{bench.chips}-{number}"
            recordings.mkdir(exist_ok=True)
            args = ["--record", str(recordings)] if is_recorded else []
            with bench.server(*args) as server:
                numbers = [PAIRS, 1, STEADY_BLOCKS, server]
                result = bench.loop(bench.hooked(**env), *map(str, numbers))
            rows[name].add(result)
            lost += result["client"]["lost_events"]
            if is_recorded:
                events += result["client"]["events"]
                size += sum(path.stat().st_size for path in recordings.iterdir())
    print(f"On {bench.chips} chip{'s' if bench.chips > 1 else ''}, {rounds} processes a row:\n")
    print("| | loop's thread, % | null test, % | helper, % | server, % | together, % | ns/op |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {row.text(name == 'floor')} |")
    plain = [us for row in rows.values() for us in row.plain_us]
    print(f"\nAn operation takes {spread(plain)} µs without tracking; {events // 2} allocations in")
    print(f"the last row, {lost} events lost in all. {size / events:.2f} bytes per event on disk.\n")


def first_line_ms(command: list[str], env: dict[str, str], folder: Path) -> float:
    """From the start of the command to its first line, by the wall clock."""
    start = time.monotonic_ns()
    with subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        end = time.monotonic_ns()
    return (end - start) / 1e6


def bench_start(bench: Bench) -> None:
    """In turns with and without the hook, so that both meet the same neighbours."""
    programs = {
        "a Python that prints a line": ([str(bench.python), "-c", "print()"], 5 * STARTS),
        "ttnn, device open, one round of the loop": ([str(bench.python), str(LOOP), "bare"], STARTS),
    }
    print("| until the first line of | without, ms | with the hook, ms | difference, ms |")
    print("|---|---|---|---|")
    with bench.server():
        for name, (command, count) in programs.items():
            with_hook, without = [], []
            for number in range(count):
                for is_hooked in (number % 2 == 0, number % 2 != 0):
                    env = bench.hooked() if is_hooked else bench.env()
                    taken = first_line_ms(command, env, bench.folder)
                    (with_hook if is_hooked else without).append(taken)
            differences = [a - b for a, b in zip(with_hook, without)]
            cells = [spread(values, "{:.1f}") for values in (without, with_hook, differences)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    tt_mem, hook = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    folder = Path(tempfile.mkdtemp(prefix="ttm-bench-"))
    try:
        version = sys.argv[4] if len(sys.argv) > 4 else "3.10"
        for cluster in (T3K, N150):
            bench = Bench(tt_mem, hook, version, folder, cluster)
            bench_rows(bench, rounds)
        bench_start(bench)
    except provision.Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
