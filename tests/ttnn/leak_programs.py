# SPDX-License-Identifier: Apache-2.0
"""Small programs with the real ttnn, clean ones and ones that leak, each in a process of its own.

usage: leak_programs.py CHIPS PROGRAM:STEPS…

For each a line is printed: process id, program, steps. A line of code that leaks says so at its
end: "leak: N", with how many remain of it, an expression of 'steps'; "shapes: N" that it fills the
program cache with at least that much, and "program_cache: N" with so many tensors, which is no leak;
"unsure: N" and "steady: N" of which class they are. What is not marked is meant to
stay or goes by itself. What a program returns is held until the device is closed.
"""

# ruff: noqa: F841 - a variable that is not read holds a tensor until it is set again

from __future__ import annotations

import collections
import functools
import gc
import os
import random
import sys
import threading
import time
from typing import Any, Callable

import ttmem
import ttnn

KEPT: list[Any] = []
CACHE: dict[Any, Any] = {}
OPENED: list[Any] = []  # devices, the last is open

PROGRAMS: dict[str, Callable[[Any, int], Any]] = {}


def program(function: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    PROGRAMS[function.__name__] = function
    return function


def zeros(dev: Any, *shape: int, memory: Any = None) -> Any:
    return ttnn.zeros(
        shape or (64, 64),
        dtype=ttnn.bfloat16,
        layout=ttnn.TILE_LAYOUT,
        device=dev,
        memory_config=memory or ttnn.DRAM_MEMORY_CONFIG,
    )


def open_device(chips: int) -> Any:
    if chips == 1:
        OPENED.append(ttnn.open_device(device_id=0))
    else:
        OPENED.append(ttnn.open_mesh_device(ttnn.MeshShape(2, chips // 2)))
    return OPENED[-1]


def reopened(old: Any) -> Any:
    chips = old.get_num_devices()
    ttnn.close_mesh_device(old)
    return open_device(chips)


# ---- leaks ----


@program
def global_list(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # leak: steps


@program
def cache_dict(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def cached(step: int) -> Any:
        if step not in CACHE:
            CACHE[step] = ttnn.multiply(x, x)  # leak: steps
        return CACHE[step]

    for step in range(steps):
        y = ttnn.add(x, cached(step))
        del y


@program
def closure(dev: Any, steps: int) -> None:
    def make() -> Callable[[], Any]:
        state = zeros(dev, 32, 64)  # leak: steps
        return lambda: state

    x = zeros(dev)
    for _ in range(steps):
        KEPT.append(make())
        y = ttnn.add(x, x)


@program
def attribute(dev: Any, steps: int) -> Any:
    class Block:
        def __init__(self) -> None:
            self.weight = zeros(dev)
            self.history: list[Any] = []

        def forward(self, x: Any) -> Any:
            y = ttnn.add(x, self.weight)
            z = ttnn.multiply(y, y)  # leak: steps
            self.history.append(z)
            return z

    model = Block()
    x = zeros(dev)
    for _ in range(steps):
        model.forward(x)
    return model


@program
def exception_kept(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def attempt(step: int) -> None:
        scratch = ttnn.multiply(x, x)  # leak: steps
        raise ValueError(step)

    for step in range(steps):
        y = ttnn.add(x, x)
        try:
            attempt(step)
        except ValueError as failure:
            KEPT.append(failure)


@program
def exception_sometimes(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def attempt(step: int) -> None:
        scratch = ttnn.multiply(x, x)  # leak: (steps + 4) // 5
        if step % 5 == 0:
            KEPT.append(scratch)
            raise ValueError(step)

    for step in range(steps):
        y = ttnn.add(x, x)
        try:
            attempt(step)
        except ValueError:
            pass


@program
def cycle(dev: Any, steps: int) -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self
            self.state = zeros(dev)  # leak: steps

    gc.disable()
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        Node()


@program
def thread(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def work() -> None:
        for _ in range(steps):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: steps

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


@program
def thread_that_ends_early(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def work() -> None:
        for _ in range(steps):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: steps

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    for _ in range(3 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)


@program
def thread_beside_main(dev: Any, steps: int) -> None:
    x = zeros(dev)

    rounds = 0

    def work() -> None:
        for _ in range(steps):
            KEPT.append(zeros(dev, 32, 32))  # leak: steps
            before = rounds
            while rounds == before:  # both go on, however busy the machine is
                time.sleep(0.001)

    y = ttnn.multiply(ttnn.add(x, x), x)  # compiled before there are two threads
    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)
        rounds += 1
    for _ in range(steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)


@program
def threads(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def work(number: int) -> None:
        for _ in range(steps):
            y = ttnn.add(x, x)
            z = ttnn.multiply(y, y)  # leak: 4 * steps
            KEPT.append(z)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@program
def shapes(dev: Any, steps: int) -> None:
    for step in range(steps):
        x = zeros(dev, 32, 32 * (step + 1))
        y = ttnn.softmax(x, dim=-1)  # shapes: steps


@program
def reshapes(dev: Any, steps: int) -> None:
    """A reshape of tiles keeps a map in its program."""
    for step in range(steps):
        x = zeros(dev, 1, 32 * step + 32, 64)
        y = ttnn.reshape(x, (1, 16 * step + 16, 128))  # program_cache: steps


@program
def reshapes_kept(dev: Any, steps: int) -> None:
    """The same, and its results are kept: the maps are the cache's, the results a leak."""
    for step in range(steps):
        x = zeros(dev, 1, 32 * step + 32, 64)
        KEPT.append(ttnn.reshape(x, (1, 16 * step + 16, 128)))  # leak: steps # program_cache: steps
        y = ttnn.add(KEPT[0], KEPT[0])


@program
def reshapes_of_one_shape(dev: Any, steps: int) -> None:
    """One program, and a leak of its results."""
    x = zeros(dev, 1, 64, 64)
    for _ in range(steps):
        KEPT.append(ttnn.reshape(x, (1, 32, 128)))  # leak: steps # program_cache: 1
        y = ttnn.add(x, x)


@program
def intermediate(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        hidden = ttnn.add(x, x)  # leak: steps
        out = ttnn.multiply(hidden, hidden)
        KEPT.append(hidden)


@program
def starts_late(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for step in range(10 * steps):
        y = ttnn.add(x, x)
        if step >= 9 * steps:
            KEPT.append(ttnn.multiply(y, y))  # leak: steps


@program
def slow(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for step in range(10 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)
        if step % 10 == 7:
            KEPT.append(ttnn.multiply(x, x))  # leak: steps


@program
def at_random(dev: Any, steps: int) -> None:
    chance = random.Random(7)
    when = set(chance.sample(range(10 * steps), steps))
    x = zeros(dev)
    for step in range(10 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)  # leak: steps
        if step in when:
            KEPT.append(z)


@program
def unbounded_lru(dev: Any, steps: int) -> None:
    x = zeros(dev)

    @functools.cache
    def mask(size: int) -> Any:
        return zeros(dev, 32, 32 * size)  # leak: steps

    KEPT.append(mask)
    for step in range(steps):
        y = ttnn.add(x, x)
        mask(step + 1)


@program
def all_lines_leak(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        a = ttnn.add(x, x)  # leak: steps
        b = ttnn.multiply(a, a)  # leak: steps
        KEPT.append((a, b))


@program
def tight(dev: Any, steps: int) -> None:
    """Results of one line, and nothing else."""
    x = zeros(dev)
    for _ in range(4 * steps):
        KEPT.append(ttnn.add(x, x))  # leak: 4 * steps


@program
def inputs_computed_in_place(dev: Any, steps: int) -> None:
    """Nothing but the input is allocated in each step."""
    total = zeros(dev)
    for _ in range(4 * steps):
        x = zeros(dev)  # leak: 4 * steps
        ttnn.add_(total, x)
        KEPT.append(x)


@program
def inputs_beside_others(dev: Any, steps: int) -> None:
    """Nothing is computed, but other tensors come and go."""
    for _ in range(4 * steps):
        KEPT.append(zeros(dev))  # leak: 4 * steps
        mask = zeros(dev, 32, 32)
        del mask


@program
def in_one_of_several_sessions(dev: Any, steps: int) -> None:
    for session in range(4):
        x = zeros(dev)
        for _ in range(steps):
            y = ttnn.add(x, x)
            z = ttnn.multiply(y, y)  # leak: steps + 3
            if session == 3:
                KEPT.append(z)
        dev = reopened(dev) if session < 3 else dev


@program
def in_each_session(dev: Any, steps: int) -> None:
    for session in range(3):
        x = zeros(dev)
        for _ in range(steps):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: 3 * steps
        dev = reopened(dev) if session < 2 else dev


@program
def and_then_a_last_word(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # leak: steps
    total = ttnn.multiply(x, x)
    total = ttnn.subtract(total, total)
    total = ttnn.divide(total, total)


@program
def per_epoch(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        for _ in range(8):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: 8 * steps
        for _ in range(50):
            y = ttnn.add(x, x)
            z = ttnn.multiply(x, x)


@program
def linked_list(dev: Any, steps: int) -> Any:
    head = None
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        head = (head, ttnn.multiply(y, y))  # leak: steps
    return head


@program
def in_l1(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        KEPT.append(zeros(dev, 32, 32, memory=ttnn.L1_MEMORY_CONFIG))  # leak: steps


@program
def beside_weights(dev: Any, steps: int) -> Any:
    weights = [zeros(dev) for _ in range(200)]
    for step in range(steps):
        y = ttnn.add(weights[step % 200], weights[0])
        KEPT.append(ttnn.multiply(y, y))  # leak: steps
    return weights


@program
def after_a_sleep(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # leak: steps
    time.sleep(0.5)


@program
def freed_at_first(dev: Any, steps: int) -> None:
    """The line that leaks did not at first."""
    x = zeros(dev)
    for step in range(2 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)  # leak: steps
        if step >= steps:
            KEPT.append(z)


@program
def marked(dev: Any, steps: int) -> None:
    """Nothing but marks tells its steps apart."""
    for _ in range(steps):
        ttmem.mark("step")
        KEPT.append(zeros(dev))  # leak: steps


@program
def in_contexts(dev: Any, steps: int) -> None:
    for step in range(steps):
        with ttmem.context(f"step {step}"):
            KEPT.append(zeros(dev))  # leak: steps


@program
def three_kinds(dev: Any, steps: int) -> Any:
    """Nothing but leaks, all of them made by one operation."""
    x = zeros(dev)
    history = []
    for step in range(steps):
        KEPT.append(ttnn.add(x, x))  # leak: steps
        CACHE[step] = ttnn.add(x, x)  # leak: steps
        history.append(ttnn.add(x, x))  # leak: steps
    return history


@program
def before_another_loop(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(20 * steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # leak: 20 * steps
    for _ in range(3):
        y = ttnn.subtract(x, x)
        z = ttnn.divide(y, y)


@program
def before_an_evaluation(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def train() -> None:
        for _ in range(40 * steps):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: 40 * steps

    def evaluate() -> None:
        for _ in range(8 * steps):
            y = ttnn.add(x, x)
            z = ttnn.subtract(y, y)

    train()
    evaluate()


@program
def on_one_line(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(40 * steps):
        KEPT.append(ttnn.subtract(ttnn.add(x, x), x))  # leak: 40 * steps
    for _ in range(20 * steps):
        y = ttnn.multiply(x, x)


@program
def with_uploads(dev: Any, steps: int) -> None:
    """Each step has an input of its own."""
    weight = zeros(dev)
    for _ in range(40 * steps):
        x = zeros(dev)
        y = ttnn.matmul(x, weight)
        KEPT.append(ttnn.softmax(y, dim=-1))  # leak: 40 * steps
    for _ in range(20 * steps):
        x = zeros(dev)
        y = ttnn.matmul(x, weight)


@program
def all_lines_of_a_phase(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(40 * steps):
        a = ttnn.add(x, x)  # leak: 40 * steps
        b = ttnn.multiply(a, a)  # leak: 40 * steps
        KEPT.append((a, b))
    for _ in range(20 * steps):
        y = ttnn.add(x, x)
        z = ttnn.subtract(y, y)


@program
def some_of_a_phase(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for step in range(80 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)  # leak: 40 * steps
        if step % 2:
            KEPT.append(z)
    z = None
    for _ in range(40 * steps):
        y = ttnn.add(x, x)
        z = ttnn.subtract(y, y)


@program
def recursion(dev: Any, steps: int) -> None:
    """Of each depth there are too few to tell."""
    x = zeros(dev)

    def walk(depth: int) -> None:
        y = ttnn.add(x, x)
        if depth > 0:
            walk(depth - 1)
        else:
            KEPT.append(ttnn.multiply(y, y))  # leak: 6

    for step in range(6):
        walk(1 + step % 3)


@program
def between_evaluations(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def evaluate() -> None:
        for _ in range(20 * steps):
            y = ttnn.add(x, x)
            z = ttnn.subtract(y, y)

    def train() -> None:
        for _ in range(40 * steps):
            y = ttnn.add(x, x)
            KEPT.append(ttnn.multiply(y, y))  # leak: 40 * steps

    for phase in (evaluate, train, evaluate):
        phase()


# ---- nothing but tensors from data: loaded or leaked, nobody can tell ----


@program
def loaded_and_closed(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(20 + steps):
        loaded.append(zeros(dev))  # unsure: 20 + steps
    return loaded


@program
def loaded_by_several_lines(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(2 * steps):
        wq = zeros(dev)  # unsure: 2 * steps
        wk = zeros(dev, 64, 32)  # unsure: 2 * steps
        bias = ttnn.full((32, 32), 0.5, layout=ttnn.TILE_LAYOUT, device=dev)  # unsure: 2 * steps
        loaded.append((wq, wk, bias))
    return loaded


@program
def loaded_by_classes(dev: Any, steps: int) -> Any:
    class Linear:
        def __init__(self, size: int) -> None:
            with ttmem.context("linear"):
                self.weight = zeros(dev, size, 64)  # unsure: 6 * steps
                self.bias = zeros(dev, 32, size)  # unsure: 6 * steps

    class Attention:
        def __init__(self) -> None:
            self.qkv, self.out = Linear(96), Linear(64)

    class Block:
        def __init__(self) -> None:
            self.attention, self.mlp = Attention(), Linear(128)
            self.norm = zeros(dev, 32, 64)  # unsure: 2 * steps

    with ttmem.context("load"):
        blocks = []
        for number in range(2 * steps):
            with ttmem.context(f"block {number}"):
                blocks.append(Block())
    return blocks


@program
def loaded_and_converted(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(4 * steps):
        raw = ttnn.zeros((64, 64), dtype=ttnn.bfloat16, device=dev)
        tiled = ttnn.to_layout(raw, ttnn.TILE_LAYOUT)
        turned = ttnn.transpose(tiled, 0, 1)
        loaded.append(ttnn.typecast(turned, ttnn.bfloat8_b))  # unsure: 4 * steps
    return loaded


@program
def loaded_and_joined(dev: Any, steps: int) -> Any:
    """Three weights become one, and an operation that makes one makes others on the way."""
    loaded = []
    for _ in range(4 * steps):
        query, key, value = (zeros(dev) for _ in range(3))
        loaded.append(ttnn.concat([query, key, value], dim=-1))  # unsure: 4 * steps
        loaded.append(ttnn.rand((64, 64), dev, dtype=ttnn.bfloat8_b))  # unsure: 4 * steps
    return loaded


@program
def loaded_again_at_the_end(dev: Any, steps: int) -> Any:
    first = [zeros(dev) for _ in range(8)]
    for _ in range(steps):
        x = ttnn.add(first[0], first[1])
        y = ttnn.multiply(x, x)
    second = []
    for _ in range(20):
        w = zeros(dev, 32, 64)  # unsure: 20
        b = zeros(dev, 32, 32)  # unsure: 20
        second.append((w, b))
    return first, second


# ---- phases that are over: leaks or meant, nobody can tell ----


@program
def short_phases(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(4 * steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # unsure: 4 * steps
    for _ in range(4 * steps):
        y = ttnn.add(x, x)
        KEPT.append(ttnn.subtract(y, y))  # unsure: 4 * steps
    for _ in range(4 * steps):
        y = ttnn.add(x, x)


@program
def parameters_of_a_test(dev: Any, steps: int) -> None:
    """What makes the input comes again for the next test, what leaked does not."""

    def fixture() -> Any:
        return zeros(dev)

    def first(x: Any) -> None:
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # unsure: 6

    def second(x: Any) -> None:
        y = ttnn.add(x, x)
        z = ttnn.subtract(y, y)

    for test in 6 * [first] + 6 * steps * [second]:
        test(fixture())


@program
def one_line_and_then_others(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for _ in range(4 * steps):
        KEPT.append(ttnn.multiply(x, x))  # unsure: 4 * steps
    for _ in range(steps):
        y = ttnn.add(x, x)
        z = ttnn.subtract(y, y)


@program
def inputs_of_a_phase(dev: Any, steps: int) -> None:
    weight = zeros(dev)
    for _ in range(40 * steps):
        x = zeros(dev)  # unsure: 40 * steps
        KEPT.append(x)
        y = ttnn.matmul(x, weight)
    for _ in range(20 * steps):
        y = ttnn.add(weight, weight)
        z = ttnn.subtract(y, y)


@program
def computed_weights(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(40 * steps):
        raw = zeros(dev)
        loaded.append(ttnn.multiply(raw, raw))  # unsure: 40 * steps
    for _ in range(20 * steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def keys_of_a_prompt(dev: Any, steps: int) -> Any:
    keys = []
    x = zeros(dev)
    for _ in range(32):
        y = ttnn.add(x, x)
        keys.append(ttnn.matmul(y, y))  # unsure: 32
        x = ttnn.subtract(y, y)
    for _ in range(8 * steps):
        for key in keys:
            y = ttnn.multiply(key, x)
    return keys


@program
def one_loop_for_both(dev: Any, steps: int) -> None:
    x = zeros(dev)
    for mode in ("train", "evaluate"):
        for _ in range(40 * steps):
            y = ttnn.add(x, x)
            if mode == "train":
                KEPT.append(ttnn.multiply(y, y))  # unsure: 40 * steps


@program
def one_function_for_both(dev: Any, steps: int) -> None:
    x = zeros(dev)

    def forward() -> None:
        y = ttnn.add(x, x)
        KEPT.append(ttnn.multiply(y, y))  # leak: 60 * steps

    for _ in range(40 * steps):
        forward()
    for _ in range(20 * steps):
        forward()


# ---- clean ----


@program
def weights(dev: Any, steps: int) -> Any:
    loaded = [zeros(dev, 32 * (i + 1), 64) for i in range(8)]
    for _ in range(steps):
        x = ttnn.multiply(loaded[0], loaded[0])
        for weight in loaded:
            y = ttnn.add(weight, weight)
    return loaded


@program
def only_weights(dev: Any, steps: int) -> Any:
    return [zeros(dev, 32 * (i + 1), 64) for i in range(8)]


@program
def models_of_several_sessions(dev: Any, steps: int) -> Any:
    """Each session has its own; the last result of one is still there when it is closed."""
    for session in range(5):
        loaded = [zeros(dev) for _ in range(4)]  # steady: 20
        for _ in range(steps):
            y = ttnn.add(loaded[0], loaded[1])  # steady: 5
            z = ttnn.matmul(y, y)  # steady: 5
        dev = reopened(dev) if session < 4 else dev
    return loaded, y, z


@program
def layers(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(32):
        wq = zeros(dev)
        wk = zeros(dev)
        wv = zeros(dev)
        wo = zeros(dev)
        loaded.append((wq, wk, wv, wo))
    for _ in range(steps):
        x = ttnn.add(loaded[0][0], loaded[0][1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def layers_of_a_class(dev: Any, steps: int) -> Any:
    class Layer:
        def __init__(self) -> None:
            self.w = zeros(dev)
            self.b = zeros(dev, 32, 64)

        def __call__(self, x: Any) -> Any:
            y = ttnn.add(x, self.w)
            return ttnn.multiply(y, y)

    model = [Layer() for _ in range(12)]
    x = zeros(dev)
    for _ in range(steps):
        h = x
        for layer in model:
            h = layer(h)
    return model


@program
def layers_with_temporaries(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(24):
        raw = zeros(dev)
        turned = ttnn.multiply(raw, raw)
        loaded.append(turned)
    for _ in range(steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def loaded_slowly(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(10):
        loaded.append(zeros(dev))
        time.sleep(0.03)
    for _ in range(steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def loaded_by_threads(dev: Any, steps: int) -> Any:
    loaded = []

    def load() -> None:
        for _ in range(8):
            w = zeros(dev)
            b = zeros(dev, 32, 32)
            loaded.append((w, b))

    workers = [threading.Thread(target=load) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(steps):
        x = ttnn.add(loaded[0][0], loaded[1][0])
        y = ttnn.multiply(x, x)
    return loaded


@program
def kv_cache(dev: Any, steps: int) -> Any:
    k = [zeros(dev, 128, 64) for _ in range(4)]
    v = [zeros(dev, 128, 64) for _ in range(4)]
    for _ in range(steps):
        for i in range(4):
            s = ttnn.add(k[i], v[i])
            y = ttnn.multiply(s, s)
    return k, v


@program
def ping_pong(dev: Any, steps: int) -> Any:
    x = zeros(dev)
    ping, pong = zeros(dev), zeros(dev)
    for _ in range(steps):
        ping, pong = pong, ttnn.add(ping, x)
        y = ttnn.multiply(pong, pong)
    return ping, pong


@program
def warm_up(dev: Any, steps: int) -> Any:
    caches: dict[int, Any] = {}
    x = zeros(dev)
    for step in range(4 * steps):
        bucket = min(step, 2)
        if bucket not in caches:
            caches[bucket] = zeros(dev, 32, 32)
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)
    return caches


@program
def warm_up_of_one_line(dev: Any, steps: int) -> Any:
    """After it one line alone allocates."""
    caches = []
    x = zeros(dev)
    for step in range(5 + steps):
        if step < 3:
            caches.append(zeros(dev, 32, 32))
        y = ttnn.add(x, x)
    return caches


@program
def one_forward(dev: Any, steps: int) -> Any:
    class Layer:
        def __init__(self) -> None:
            self.w = zeros(dev)
            self.b = zeros(dev)

        def __call__(self, x: Any) -> Any:
            y = ttnn.matmul(x, self.w)
            return ttnn.add(y, self.b)

    model = [Layer() for _ in range(3 + steps)]
    x = zeros(dev)
    for layer in model:
        x = layer(x)
    return model


@program
def outputs_of_each_epoch(dev: Any, steps: int) -> Any:
    x = zeros(dev)
    for _ in range(steps):
        outputs = [ttnn.multiply(x, x) for _ in range(10)]
        total = ttnn.add(outputs[0], outputs[1])
    return outputs


@program
def lazy_layers(dev: Any, steps: int) -> Any:
    caches: dict[Any, Any] = {}
    x = zeros(dev)
    for step in range(3 + steps):
        for layer in range(8):
            if (layer, min(step, 1)) not in caches:
                caches[layer, min(step, 1)] = zeros(dev, 32, 64)
            y = ttnn.add(x, x)
            z = ttnn.multiply(y, y)
    return caches


@program
def lazy_state(dev: Any, steps: int) -> Any:
    """As an optimizer has it: made in the first step."""
    params = [zeros(dev) for _ in range(6)]
    state: dict[int, Any] = {}
    for _ in range(1 + steps):
        for i, param in enumerate(params):
            grad = ttnn.multiply(param, param)
            if i not in state:
                m = zeros(dev)
                v = zeros(dev)
                state[i] = (m, v)
            update = ttnn.add(grad, state[i][0])
    return params, state


@program
def replaced_state(dev: Any, steps: int) -> Any:
    params = [zeros(dev) for _ in range(6)]
    x = zeros(dev)
    for _ in range(1 + steps):
        for i in range(6):
            grad = ttnn.multiply(x, x)
            params[i] = ttnn.add(params[i], grad)
    return params


@program
def bounded_lru(dev: Any, steps: int) -> Any:
    cache: collections.OrderedDict[int, Any] = collections.OrderedDict()
    x = zeros(dev)
    for step in range(8 + 2 * steps):
        y = ttnn.add(x, x)
        cache[step] = ttnn.multiply(y, y)
        if len(cache) > 8:
            cache.popitem(last=False)
    return cache


@program
def lru_with_hits(dev: Any, steps: int) -> Any:
    chance = random.Random(3)
    x = zeros(dev)

    @functools.lru_cache(maxsize=8)
    def mask(size: int) -> Any:
        return zeros(dev, 32, 32 * size)

    for _ in range(20 + 4 * steps):
        y = ttnn.add(x, x)
        mask(1 + int(chance.random() ** 2 * 24))
    return mask


@program
def deque(dev: Any, steps: int) -> Any:
    last: collections.deque[Any] = collections.deque(maxlen=4)
    x = zeros(dev)
    for _ in range(4 + steps):
        y = ttnn.add(x, x)
        last.append(ttnn.multiply(y, y))
    return last


@program
def double_buffered(dev: Any, steps: int) -> Any:
    slots: list[Any] = [None, None]
    weight = zeros(dev)
    for step in range(2 + steps):
        slots[step % 2] = zeros(dev, 32, 64)
        y = ttnn.add(weight, weight)
        z = ttnn.multiply(y, y)
    return slots


@program
def accumulated_and_cleared(dev: Any, steps: int) -> Any:
    outputs: list[Any] = []
    x = zeros(dev)
    for _ in range(20 + 4 * steps):
        y = ttnn.add(x, x)
        outputs.append(ttnn.multiply(y, y))
        if len(outputs) == 8:
            outputs.clear()
    return outputs


@program
def best_so_far(dev: Any, steps: int) -> Any:
    best = None
    x = zeros(dev)
    for step in range(4 * steps):
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)
        if step in (0, steps, 2 * steps):
            best = z
    return best


@program
def grows_by_doubling(dev: Any, steps: int) -> Any:
    room, cache = 1, zeros(dev, 32, 32)
    x = zeros(dev)
    for step in range(8 * steps):
        if step >= room:
            room *= 2
            cache = zeros(dev, 32, 32 * room)
        y = ttnn.add(x, x)
        z = ttnn.multiply(y, y)
    return cache


@program
def cycles_collected(dev: Any, steps: int) -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self
            self.state = zeros(dev)

    x = zeros(dev)
    for step in range(10 + 4 * steps):
        y = ttnn.add(x, x)
        Node()
        if step % 5 == 4:
            gc.collect()


@program
def second_model(dev: Any, steps: int) -> Any:
    first = [zeros(dev) for _ in range(8)]
    for _ in range(steps):
        x = ttnn.add(first[0], first[1])
        y = ttnn.multiply(x, x)
    second = []
    for _ in range(8):
        w = zeros(dev, 32, 64)
        b = zeros(dev, 32, 32)
        second.append((w, b))
    for _ in range(steps):
        x = ttnn.add(second[0][0], second[1][0])
        y = ttnn.multiply(x, x)
    return first, second


@program
def many_programs(dev: Any, steps: int) -> Any:
    x = zeros(dev)
    for _ in range(1 + steps):
        for op in (ttnn.subtract, ttnn.multiply, ttnn.divide, ttnn.maximum, ttnn.matmul, ttnn.gt):
            y = op(x, x)
            z = ttnn.add(x, x)
    return x


@program
def found_shapes(dev: Any, steps: int) -> Any:
    """Programs for a few shapes, which are used again and again."""
    for step in range(12 + 4 * steps):
        x = zeros(dev, 32, 32 * (1 + step % 4))
        y = ttnn.softmax(x, dim=-1)
    return y


@program
def long_init(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(300):
        w = zeros(dev, 32, 32)
        b = zeros(dev, 32, 32)
        loaded.append((w, b))
        time.sleep(0.001)
    for _ in range(2 + steps):
        x = ttnn.add(loaded[0][0], loaded[1][0])
        y = ttnn.multiply(x, x)
        z = ttnn.multiply(y, y)
    return loaded


@program
def thread_scratch(dev: Any, steps: int) -> Any:
    """Each worker has memory of its own that it makes when it begins."""
    own = []
    x = zeros(dev)

    def work() -> None:
        own.append(zeros(dev, 32, 32))
        for _ in range(4 * steps):
            y = ttnn.add(x, x)
            z = ttnn.multiply(y, y)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return own


@program
def marked_phases(dev: Any, steps: int) -> Any:
    ttmem.mark("load")
    with ttmem.context("load"):
        loaded = [zeros(dev) for _ in range(40)]
    ttmem.mark("decode")
    for _ in range(steps):
        with ttmem.context("decode"):
            x = ttnn.add(loaded[0], loaded[1])
            y = ttnn.multiply(x, x)
    return loaded


@program
def converted_weights(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(40 * steps):
        raw = ttnn.zeros((64, 64), dtype=ttnn.bfloat16, device=dev)
        tiled = ttnn.to_layout(raw, ttnn.TILE_LAYOUT)
        turned = ttnn.transpose(tiled, 0, 1)
        loaded.append(ttnn.typecast(turned, ttnn.bfloat8_b))  # steady: 40 * steps
    for _ in range(steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def converted_on_one_line(dev: Any, steps: int) -> Any:
    count = 40 * steps
    loaded = [ttnn.typecast(zeros(dev), ttnn.bfloat8_b) for _ in range(count)]  # steady: 40 * steps
    for _ in range(20 * steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def uploaded_beside_conversions(dev: Any, steps: int) -> Any:
    loaded = []
    for _ in range(40 * steps):
        loaded.append(zeros(dev))  # steady: 40 * steps
        bias = ttnn.typecast(zeros(dev, 32, 32), ttnn.bfloat8_b)
    for _ in range(20 * steps):
        x = ttnn.add(loaded[0], loaded[1])
        y = ttnn.multiply(x, x)
    return loaded


@program
def first_call(dev: Any, steps: int) -> Any:
    """What a layer has is made in the call that compiles it, which is on a line of its own."""

    class Layer:
        cache: Any = None

        def __call__(self, x: Any) -> Any:
            y = ttnn.add(x, x)
            if self.cache is None:
                self.cache = zeros(dev, 32, 64)  # steady: 48
            return ttnn.multiply(y, y)

    model = [Layer() for _ in range(48)]

    def forward(x: Any) -> None:
        for layer in model:
            x = layer(x)

    x = zeros(dev)
    forward(x)
    for _ in range(steps):
        forward(x)
    return model


@program
def keys_of_a_first_call(dev: Any, steps: int) -> Any:
    """As before, but computed: what calls the same function later finds them there."""

    class Layer:
        key: Any = None

        def __call__(self, x: Any) -> Any:
            y = ttnn.add(x, x)
            if self.key is None:
                self.key = ttnn.matmul(y, y)  # steady: 48
            return ttnn.multiply(y, self.key)

    model = [Layer() for _ in range(48)]

    def forward(x: Any) -> None:
        for layer in model:
            x = layer(x)

    x = zeros(dev)
    forward(x)
    for _ in range(steps):
        forward(x)
    return model


@program
def masks_by_shape(dev: Any, steps: int) -> Any:
    """Computed when a shape is first seen, and then used again; at last something else is done."""
    masks: dict[int, Any] = {}
    chance = random.Random(5)
    x = zeros(dev)

    def mask(size: int) -> Any:
        if size not in masks:
            masks[size] = ttnn.multiply(x, x)  # steady: 12
        return masks[size]

    for _ in range(60 + 20 * steps):
        y = ttnn.add(x, mask(chance.randrange(12)))
        z = ttnn.multiply(y, y)
    for _ in range(5 * steps):
        y = ttnn.subtract(x, x)
        z = ttnn.add(y, y)
    return masks


@program
def masks_from_data(dev: Any, steps: int) -> Any:
    masks: dict[int, Any] = {}
    chance = random.Random(5)
    x = zeros(dev)

    def mask(size: int) -> Any:
        if size not in masks:
            ones = zeros(dev)
            masks[size] = ttnn.multiply(ones, ones)  # steady: 12
        return masks[size]

    for _ in range(60 + 20 * steps):
        y = ttnn.add(x, mask(chance.randrange(12)))
        z = ttnn.multiply(y, y)
    return masks


def run(name: str, steps: int, chips: int) -> None:
    kept = PROGRAMS[name](open_device(chips), steps)
    ttnn.close_mesh_device(OPENED[-1])
    del kept


def main() -> None:
    for word in sys.argv[2:]:
        name, steps = word.split(":")
        child = os.fork()
        if child == 0:
            run(name, int(steps), int(sys.argv[1]))
            os._exit(0)
        print(child, name, steps, flush=True)
        _, status = os.waitpid(child, 0)
        if status != 0:
            sys.exit(f"{name} ended with {status}")


if __name__ == "__main__":
    main()
