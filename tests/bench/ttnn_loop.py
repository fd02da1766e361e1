# SPDX-License-Identifier: Apache-2.0
"""The program that bench_ttnn.py measures: a decode loop of ttnn operations on a mock device.

usage: ttnn_loop.py bare | tracked PAIRS ROUNDS STEADY_BLOCKS SERVER_PID

With CHIPS=8 in the environment it runs on a mesh of so many. Prints one line of JSON and waits for the
end of its input. Each block of operations ends what it allocates, and its time is that of this thread's
CPU clock.

bare:    one round of the loop, as a program that is not tracked does it; the time from the start.
tracked: PAIRS pairs of blocks with tracking and as if there was no hook (bench_slots.c), and as many
         without a difference, per round; then STEADY_BLOCKS blocks with tracking, for the CPU of the
         server and the helper.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

import ttnn

WIDTH = 256
CONTEXT = 128


class Layer:
    """One layer of a decoder, for a batch of 32 users."""

    def __init__(self, device: Any):
        self.device = device
        self.wqkv = self.tensor(WIDTH, WIDTH)
        self.keys = self.tensor(WIDTH, CONTEXT)
        self.values = self.tensor(CONTEXT, WIDTH)
        self.wo = self.tensor(WIDTH, WIDTH)
        self.w1 = self.tensor(WIDTH, WIDTH)
        self.w3 = self.tensor(WIDTH, WIDTH)
        self.w2 = self.tensor(WIDTH, WIDTH)

    def tensor(self, rows: int, columns: int) -> Any:
        return ttnn.empty(
            (1, 1, rows, columns),
            dtype=ttnn.bfloat16,
            layout=ttnn.TILE_LAYOUT,
            device=self.device,
            memory_config=ttnn.DRAM_MEMORY_CONFIG,
        )

    def attention(self, x: Any) -> Any:
        normed = ttnn.rms_norm(x)
        query = ttnn.linear(normed, self.wqkv, memory_config=ttnn.L1_MEMORY_CONFIG)
        scores = ttnn.softmax(ttnn.matmul(query, self.keys), dim=-1)
        return ttnn.add(x, ttnn.linear(ttnn.matmul(scores, self.values), self.wo))

    def feed_forward(self, x: Any) -> Any:
        normed = ttnn.rms_norm(x)
        gate = ttnn.silu(ttnn.linear(normed, self.w1))
        up = ttnn.linear(normed, self.w3)
        hidden = ttnn.multiply(gate, up, memory_config=ttnn.L1_MEMORY_CONFIG)
        return ttnn.add(x, ttnn.linear(hidden, self.w2))

    def decode(self, x: Any) -> None:
        """A block: 14 operations; all that they make is gone when it returns."""
        self.feed_forward(self.attention(x))


class LayerOfMesh(Layer):
    """As many operations. Matrix products and silu() do not run on a mock of several chips."""

    def attention(self, x: Any) -> Any:
        normed = ttnn.rms_norm(x)
        query = ttnn.multiply(normed, x, memory_config=ttnn.L1_MEMORY_CONFIG)
        scores = ttnn.softmax(ttnn.multiply(query, normed), dim=-1)
        return ttnn.add(x, ttnn.multiply(ttnn.multiply(scores, normed), x))

    def feed_forward(self, x: Any) -> Any:
        normed = ttnn.rms_norm(x)
        gate = ttnn.add(ttnn.multiply(normed, x), x)
        up = ttnn.multiply(normed, normed)
        hidden = ttnn.multiply(gate, up, memory_config=ttnn.L1_MEMORY_CONFIG)
        return ttnn.add(x, ttnn.multiply(hidden, normed))


OPERATIONS = 14
WARM_UP = 600  # blocks: a ring has been written all over


def blocks_of(work: Callable[[], None], count: int) -> int:
    """Nanoseconds of this thread's CPU."""
    start = time.thread_time_ns()
    for _ in range(count):
        work()
    return time.thread_time_ns() - start


def pairs_of(
    work: Callable[[], None], listen: Callable[[bool], None], count: int, is_null: bool
) -> tuple[float, float]:
    """The median difference of tracked and untracked blocks, and the median untracked block."""
    differences, plain = [], []
    for number in range(count):
        times = {}
        for is_tracked in (number % 2 == 0, number % 2 != 0):
            listen(is_tracked and not is_null)
            work()  # the caches are as this way of running leaves them
            times[is_tracked] = blocks_of(work, 1)
        differences.append(times[True] - times[False])
        plain.append(times[False])
    listen(True)
    return statistics.median(differences), statistics.median(plain)


def process_ns(pid: int) -> int:
    """CPU of another process: the clock that clock_getcpuclockid() names."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def helper_ns() -> int:
    """CPU of libttmem's own thread."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "tt-mem\n":
            return int((task / "schedstat").read_text().split()[0])
    return 0


def steady(work: Callable[[], None], blocks: int, server: int) -> dict[str, float]:
    """What the server and the helper use while everything is tracked, in parts of the loop."""
    server_before, helper_before = process_ns(server), helper_ns()
    spent = blocks_of(work, blocks)
    time.sleep(1.5)  # a recording is written once a second
    return {
        "server": (process_ns(server) - server_before) / spent,
        "helper": (helper_ns() - helper_before) / spent,
    }


def main() -> None:
    chips = int(os.environ.get("CHIPS", "1"))
    if chips == 1:
        device = ttnn.open_device(device_id=0)
    else:
        device = ttnn.open_mesh_device(ttnn.MeshShape(2, chips // 2))
    layer = Layer(device) if chips == 1 else LayerOfMesh(device)
    x = layer.tensor(32, WIDTH)

    def work() -> None:
        layer.decode(x)

    work()
    if sys.argv[1] == "bare":
        print(json.dumps({"cpu_s": time.process_time()}), flush=True)
        os._exit(0)
    pairs, rounds, steady_blocks, server = map(int, sys.argv[2:6])
    slots = ctypes.CDLL(os.environ["BENCH_SLOTS"])
    assert slots.bench_slots_find() > 0
    listen = slots.bench_slots_set
    listen.argtypes, listen.restype = [ctypes.c_bool], None
    gc.disable()
    blocks_of(work, WARM_UP)
    results: dict[str, Any] = {"tracked": [], "null": [], "steady": []}
    for _ in range(rounds):
        results["tracked"].append(pairs_of(work, listen, pairs, is_null=False))
        results["null"].append(pairs_of(work, listen, pairs, is_null=True))
        results["steady"].append(steady(work, steady_blocks, server))
    results["operations"] = OPERATIONS
    print(json.dumps(results), flush=True)
    sys.stdin.read()
    if chips == 1:
        ttnn.close_device(device)
    else:
        ttnn.close_mesh_device(device)


if __name__ == "__main__":
    main()
