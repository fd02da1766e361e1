# SPDX-License-Identifier: Apache-2.0
"""Allocates from as many kinds of call sites as Python has, and then as it is told.

usage: origin_program.py CHIPS close | kill

Each site allocates tensors of a width of its own, by which its origin is found again: the line
ends with "site W", then "× N" when that is more than one, and the operation if it is not to make
zeros. With "kill" it says what the allocator holds, and is killed in a way it cannot prevent.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import json
import os
import py_compile
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import ttnn

KEPT: list[Any] = []
REGIONS = ("DRAM", "L1", "L1_SMALL", "TRACE")

CHIPS = int(sys.argv[1])
dev = (
    ttnn.open_device(device_id=0)
    if CHIPS == 1
    else ttnn.open_mesh_device(ttnn.MeshShape(2, CHIPS // 2))
)
# Built in, so that it has no frame.
make = functools.partial(ttnn.zeros, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=dev)


def new(width: int) -> tuple[int, int]:
    """A shape; to make it is the business of the line that is to be found."""
    return (32, 32 * width)


keep = KEPT.append

keep(make(new(1)))  # site 1


def recurse(depth: int) -> None:
    if depth > 0:
        recurse(depth - 1)
    else:
        keep(make(new(2)))  # site 2


recurse(5)
KEPT += [make(new(3)) for _ in range(4)]  # site 3 × 4
KEPT += {n: make(new(4)) for n in range(3)}.values()  # site 4 × 3
KEPT += list(make(new(5)) for _ in range(2))  # site 5 × 2
KEPT += map(lambda width: make(new(width)), [6, 6])  # site 6 × 2


def decorated(function: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(function)
    def wrapper() -> Any:
        keep(make(new(7)))  # site 7
        return function()

    return wrapper


@decorated
def under_a_decorator() -> None:
    keep(make(new(8)))  # site 8


under_a_decorator()


class Body:
    weight = make(new(9))  # site 9

    def __init__(self) -> None:
        self.own = make(new(10))  # site 10

    @property
    def state(self) -> Any:
        return make(new(11))  # site 11

    @staticmethod
    def of_class() -> Any:
        return make(new(12))  # site 12

    def __getattr__(self, name: str) -> Any:
        return make(new(13))  # site 13

    def __enter__(self) -> None:
        keep(make(new(14)))  # site 14

    def __exit__(self, *_: object) -> None:
        keep(make(new(15)))  # site 15


body = Body()
KEPT += [body, body.state, Body.of_class(), body.missing]
with body:
    pass


def steps() -> Iterator[Any]:
    yield make(new(16))  # site 16


KEPT += steps()


@contextlib.contextmanager
def scope() -> Iterator[None]:
    keep(make(new(17)))  # site 17
    yield


with scope():
    pass


async def coroutine() -> None:
    await asyncio.sleep(0)
    keep(make(new(18)))  # site 18


asyncio.run(coroutine())


def in_thread() -> None:
    keep(make(new(19)))  # site 19


worker = threading.Thread(target=in_thread, name="worker-of-19")
worker.start()
worker.join()


def in_pool(width: int) -> None:
    keep(make(new(width)))  # site 20 × 8


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(in_pool, [20] * 8))

try:
    raise KeyError
except KeyError:
    keep(make(new(21)))  # site 21
finally:
    keep(make(new(22)))  # site 22

exec("\n\ndef executed():\n    keep(make(new(23)))\n\nexecuted()\n")

with tempfile.TemporaryDirectory() as folder:
    source = Path(folder, "ghost.py")
    source.write_text("def haunt(keep, make, new):\n    x = 0\n    keep(make(new(24)))\n")
    py_compile.compile(str(source), str(Path(folder, "ghost.pyc")))
    source.unlink()
    sys.path.insert(0, folder)
    import ghost

    ghost.haunt(keep, make, new)
    sys.path.remove(folder)

left = make(new(25))  # site 25
keep(ttnn.multiply(left, left))  # site 25 ttnn.multiply
keep(left + left)  # site 25 ttnn.add
keep(ttnn.softmax(ttnn.subtract(left, left), dim=-1))  # site 25 ttnn.softmax

(lambda: keep(make(new(28))))()  # site 28
sorted([29], key=lambda width: keep(make(new(width))) or 0)  # site 29


def holds() -> dict[str, list[int]]:
    """Region: blocks and bytes, as the allocator has them."""
    sums = {}
    for region in REGIONS:
        view = ttnn.get_memory_view(dev, getattr(ttnn.BufferType, region))
        blocks = sum(block["allocated"] == "yes" for block in view.block_table)
        sums[region] = [blocks, view.total_bytes_allocated_per_bank * view.num_banks]
    return sums


if sys.argv[2] == "kill":
    print(json.dumps(holds()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
ttnn.close_mesh_device(dev)
