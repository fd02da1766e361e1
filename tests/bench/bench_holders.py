# SPDX-License-Identifier: Apache-2.0
"""What the search for holders takes, beside a bare pass over all objects. Numbers, no verdict.

usage: bench_holders.py PACKAGE BUILD [ROUNDS [PYTHON…]]

Each round is a process with 1.5 million objects and 300 tensors (of a stand-in for ttnn). It makes
a bare pass, gc.get_referents() of each of gc.get_objects(), then one search for all tensors, both
in thread CPU time; and says how far the search raised the most memory that the process ever had.
A cell is the median [least–most] of its rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

PROGRAM = """
import gc, json, resource, sys, time
from ttmem import _holders

class Tensor:
    def __init__(self, number):
        self.number = number
    def buffer_unique_id(self):
        return self.number

Tensor.__module__ = "ttnn"

class Thing:
    pass

def make_crowd(count):
    crowd = []
    while len(crowd) < count // 5:
        thing = Thing()
        thing.number, thing.parts = len(crowd), [str(len(crowd))]
        thing.table, thing.pair = {"parts": thing.parts}, (thing.parts, thing.number)
        crowd.append(thing)
    return crowd

def seconds(call):
    begin = time.thread_time()
    call()
    return time.thread_time() - begin

def bare():
    for thing in gc.get_objects():
        gc.get_referents(thing)

def most_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

gc.disable()
CROWD = make_crowd(int(sys.argv[1]))
KEPT = [{"k": [Tensor(number)]} for number in range(1, 301)]
question = "".join(f"{n} 0 0 {n}\\n" for n in range(1, 301)).encode()
assert len(_holders._native()) == 5
bare_s = seconds(bare)
before = most_kib()
answer = []
search_s = seconds(lambda: answer.append(_holders.find(question)))
lines = answer[0].decode().splitlines()
assert len(lines) == 300 and all("list KEPT" in line for line in lines), lines[:3]
print(json.dumps([len(gc.get_objects()), bare_s, search_s, (most_kib() - before) / 1024]))
"""
OBJECTS = 1_500_000


def measure(python: str, package: str, build: str) -> list[float]:
    env = {**os.environ, "PYTHONPATH": package, "TTMEM_LIBRARY": build}
    done = subprocess.run(
        [python, "-c", PROGRAM, str(OBJECTS)], capture_output=True, text=True, env=env, check=True
    )
    return list(json.loads(done.stdout))


def cell(values: list[float], unit: str) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.2f}{unit} [{low:.2f}–{high:.2f}]"


def main() -> int:
    package, build, *rest = sys.argv[1:]
    rounds = int(rest[0]) if rest else 5
    for python in rest[1:] or [sys.executable]:
        rows = [measure(python, package, build) for _ in range(rounds)]
        objects, bare, search, memory = (list(column) for column in zip(*rows, strict=True))
        ratios = [s / b for s, b in zip(search, bare, strict=True)]
        print(f"{python}: {int(objects[0])} objects")
        print(f"  bare pass   {cell(bare, ' s')}")
        print(f"  search      {cell(search, ' s')}, {cell(ratios, ' times')} a bare pass")
        print(f"  memory      {cell(memory, ' MiB')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
