# SPDX-License-Identifier: Apache-2.0
"""`tt-mem run --holders` with the real ttnn: what keeps the buffers that remain, said by origin."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from basics import PATIENCE_S, TT_MEM
from clusters import N150
from pages import data_of
from programs import PYTHON, environment

# 'new' is the one line that leaks; each program plants what it makes somewhere else. A search that
# goes wrong may go on for ever, and take memory as it goes: hence the limits.
HEAD = """
import gc, os, resource, signal, sys, threading
import ttnn

gc.disable()
KEPT, CACHE = [], {}

class Thing:
    pass

def new(device):
    return ttnn.zeros((32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)

device = ttnn.open_device(device_id=0)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 30),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
"""


def run(
    folder: Path, program: str, *options: str, ending: str = "", **extra: str
) -> tuple[int, str, Any]:
    """Exit status, what it printed, and the report."""
    script = folder / "decode.py"
    script.write_text(HEAD + textwrap.dedent(program) + textwrap.dedent(ending))
    recording = folder / "run.ttmem"
    done = subprocess.run(
        [TT_MEM, "run", "-o", recording, *options, PYTHON, script],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, N150, XDG_RUNTIME_DIR=str(folder), **extra),
        timeout=PATIENCE_S * 4,
        check=False,
    )
    said = subprocess.run(
        [TT_MEM, "report", recording, "--json"], capture_output=True, check=True, env=os.environ
    )
    return done.returncode, done.stdout + done.stderr, json.loads(said.stdout)


# A leak as a loop makes it: something else comes and goes besides.
LOOP = """
for _ in range(20):
    ttnn.add(KEPT[0], KEPT[0]) if KEPT else None
    KEPT.append(new(device))
"""


def leak_in(report: Any) -> dict[str, Any]:
    (process,) = report["processes"]
    (origin,) = [o for o in process["origins"] if o["python"][:1] and ":new" in o["python"][0]]
    return dict(origin)


def without_lines(texts: list[str]) -> list[str]:
    return [re.sub(r"decode\.py:\d+", "decode.py:LINE", text) for text in texts]


def held(report: Any) -> tuple[str | None, list[str]]:
    """By a search that was done."""
    leak = leak_in(report)
    assert leak["holders_search"] == "done"
    return leak["cause"], without_lines(leak["holders"])


# Semaphores that all cores of a device see: buffers without a tensor.
SEMAPHORES = """
cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))})
def new(device):
    return ttnn.create_global_semaphore(device, cores, 0)
"""

PLANTS = {
    "list": (
        "for _ in range(9): KEPT.append(new(device))",
        "container",
        "list KEPT in module decode",
    ),
    "dict": ("CACHE['k'] = new(device)", "container", "dict CACHE in module decode"),
    "list of semaphores": (
        SEMAPHORES + "for _ in range(9): KEPT.append(new(device))",
        "container",
        "list KEPT in module decode",
    ),
    "attribute": (
        """
        thing = Thing()
        thing.layers = [{"k": new(device)}]
        """,
        "container",
        "Thing thing in module decode: thing.layers[0]['k']",
    ),
    "closure": (
        """
        def make(t):
            return lambda: t
        STEP = make(new(device))
        """,
        "closure",
        "closure of make.<locals>.<lambda>, variable t, held by function STEP in module decode",
    ),
    "cycle": (
        """
        node = Thing()
        node.me, node.t = node, new(device)
        del node
        """,
        "cycle",
        "cycle through Thing.me",
    ),
    "traceback": (
        """
        def fail():
            inside = new(device)
            raise ValueError("kept")
        try:
            fail()
        except ValueError as failure:
            KEPT.append(failure)
        """,
        "traceback",
        "traceback of ValueError: variable inside of fail (decode.py:LINE), "
        "held by list KEPT in module decode",
    ),
    "generator": (
        """
        def tokens():
            inside = new(device)
            yield 1
        STEPS = tokens()
        next(STEPS)
        """,
        "frame",
        "generator tokens (decode.py:LINE), variable inside, "
        "held by generator STEPS in module decode",
    ),
    "thread": (
        """
        main = ttnn.ones((32, 32), device=device)  # Python frames are known from the first one on
        there, stop = threading.Event(), threading.Event()
        def work():
            mine = new(device)
            there.set()
            stop.wait()
        threading.Thread(target=work, name="worker", daemon=True).start()
        there.wait()
        """,
        "frame",
        "variable mine of work (decode.py:LINE) in thread worker",
    ),
    "coroutine": (
        """
        import asyncio
        async def main():
            mine = new(device)
            await asyncio.sleep(0.001)
            ttnn.close_device(device)
        asyncio.run(main())
        """,
        "frame",
        "variable mine of main (decode.py:LINE)",
    ),
    "class": (
        """
        Thing.seen = [new(device)]
        """,
        "container",
        "list Thing.seen in module decode",
    ),
    "based on C": (
        """
        class Place(ttnn.CoreCoord):
            pass
        place = Place(0, 0)
        place.kept = [new(device)]
        """,
        "container",
        "Place place in module decode: place.kept[0]",
    ),
    "module without a name": (
        """
        import types
        KEPT.append(types.ModuleType("plugin"))
        KEPT[0].kept = new(device)
        """,
        "container",
        "list KEPT in module decode: KEPT[0].kept",
    ),
    "local": (
        """
        def main():
            mine = new(device)
            ttnn.close_device(device)
        main()
        """,
        "frame",
        "variable mine of main (decode.py:LINE)",
    ),
}


@pytest.mark.parametrize("what", PLANTS)
def test_each_holder_is_in_the_report(folder: Path, what: str) -> None:
    plant, cause, text = PLANTS[what]
    close = "" if "close_device" in plant else "\nttnn.close_device(device)\n"
    status, out, report = run(folder, plant, "--holders", ending=close)
    assert status == 0, out
    assert held(report) == (cause, [text])


def test_a_graph_is_told_by_what_holds_all_of_it(folder: Path) -> None:
    """The last of its parts has a name of its own as well."""
    program = """
    class Node:
        def __init__(self, tensor, before):
            self.tensor, self.before = tensor, before
    total = None
    for _ in range(20):
        part = Node(new(device), ())
        total = Node(None, (total, part))
    """
    status, out, report = run(folder, program, "--holders", ending="ttnn.close_device(device)")
    assert status == 0, out
    cause, (first, second) = held(report)
    path = "total.before[0].before[0] … .before[1].tensor"
    assert (cause, first) == ("container", f"Node total in module decode: {path}")
    assert second == "Node part in module decode"


# By a thread without the GIL, while the main thread has nothing to do but wait.
CLOSE_ELSEWHERE = """
thread = threading.Thread(target=ttnn.close_device, args=[device])
thread.start()
thread.join()
assert threading.enumerate() == [threading.main_thread()]
"""

ENDINGS = {
    "closed": ("ttnn.close_device(device)", 0),
    "closed in a thread": (CLOSE_ELSEWHERE, 0),
    "left open": ("", 0),
    "raised": ("raise KeyError('over')", 1),
    "exited": ("sys.exit(7)", 7),
    "interrupted": ("os.kill(os.getpid(), signal.SIGINT)", 128 + signal.SIGINT),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_however_the_program_ends(folder: Path, how: str) -> None:
    ending, expected = ENDINGS[how]
    status, out, report = run(folder, LOOP, "--holders", ending=ending)
    assert status == expected, out
    assert held(report) == ("container", ["list KEPT in module decode"])
    leak = leak_in(report)
    assert leak["suspect"] and "bound it" in leak["advice"]
    assert "held by list KEPT in module decode" in " ".join(out.split())


def test_nobody_is_asked_without_the_option(folder: Path) -> None:
    _, out, report = run(folder, LOOP)
    leak = leak_in(report)
    assert (leak["cause"], leak["holders"], leak["holders_search"]) == (None, [], "not_asked")
    assert "held by" not in out and "search for holders" not in out


def test_an_unfinished_search_does_not_say_that_nothing_holds_it(folder: Path) -> None:
    ending = "ttnn.close_device(device)"
    status, out, report = run(
        folder, LOOP, "--holders", ending=ending, TTMEM_HOLDERS_CPU_SECONDS="0"
    )
    assert status == 0, out
    leak = leak_in(report)
    assert (leak["cause"], leak["holders"], leak["holders_search"]) == (None, [], "unfinished")
    words = " ".join(out.split())
    assert "search for holders not finished" in words and "no Python object" not in words
    page = folder / "run.html"
    command = [TT_MEM, "export", folder / "run.ttmem", "--format", "html", "-o", page]
    subprocess.run(command, check=True)
    (process,) = data_of(page)["processes"]
    (on_page,) = [o for o in process["origins"] if "holders_search" in o]
    assert (on_page["holders"], on_page["holders_search"]) == ([], "unfinished")


# An encoder of the kind of BERT, and as many objects as a program has that imports large libraries.
MODEL = """
import functools, subprocess

def make_crowd(count):
    crowd = []
    for i in range(count // 5):
        thing = Thing()
        thing.name, thing.parts = str(i), [i, str(i)]
        thing.table, thing.pair = {"parts": thing.parts}, (thing.parts, i)
        crowd.append(thing)
    return crowd

def weight(*shape):
    return ttnn.ones(shape, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)

class Layer:
    def __init__(self):
        self.q, self.k, self.v, self.o = (weight(64, 64) for _ in range(4))
        self.up, self.down = weight(64, 128), weight(128, 64)
        self.norms = [(weight(1, 64), weight(1, 64)) for _ in range(2)]

    def norm(self, x, which):
        scale, shift = self.norms[which]
        return ttnn.layer_norm(x, weight=scale, bias=shift)

    def __call__(self, x):
        q, k, v = (ttnn.linear(x, w) for w in (self.q, self.k, self.v))
        scores = ttnn.softmax(ttnn.matmul(q, ttnn.transpose(k, -2, -1)), dim=-1)
        attended = ttnn.linear(ttnn.matmul(scores, v), self.o)
        x = self.norm(ttnn.add(x, attended), 0)
        inner = ttnn.linear(ttnn.gelu(ttnn.linear(x, self.up)), self.down)
        return self.norm(ttnn.add(x, inner), 1)

class Encoder:
    def __init__(self, layers):
        self.layers = [Layer() for _ in range(layers)]
        self.results = {}

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def plant_list(step):
    STATE.setdefault("hidden", []).append(model(tokens))

def plant_results(step):
    model.results[step] = model(tokens)

@functools.lru_cache(maxsize=None)
def plant_cached(step):
    return model(tokens)

def plant_generator(step):
    inside = model(tokens)
    yield step
    yield inside

def plant_closure(step):
    kept = model(tokens)
    HOOKS.append(lambda: kept)

def plant_exception(step):
    mine = model(tokens)
    raise ValueError(step)

def plant_cycle(step):
    node = Thing()
    node.me, node.hidden = node, model(tokens)

model, tokens = Encoder(2), weight(1, 32, 64)
STATE, HOOKS, STREAMS, FAILURES = {}, [], [], []
CROWD = make_crowd(350_000)
for step in range(3):
    plant_list(step)
    plant_results(step)
    plant_cached(step)
    STREAMS.append(plant_generator(step))
    next(STREAMS[-1])
    plant_closure(step)
    try:
        plant_exception(step)
    except ValueError as failure:
        FAILURES.append(failure)
    plant_cycle(step)
assert len(gc.get_objects()) > 300_000
"""

# Beside a program that never rests, on the same core, of which this thread gets a tenth.
UNDER_LOAD = """
core = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
os.nice(10)
busy = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
try:
    ttnn.close_device(device)
finally:
    busy.kill()
    busy.wait()
"""

PLANTED = {
    "plant_list": ("container", "dict STATE in module decode: STATE['hidden']["),
    "plant_results": ("container", "Encoder model in module decode: model.results["),
    "plant_cached": ("container", "_lru_cache_wrapper plant_cached in module decode"),
    "plant_generator": (
        "frame",
        "generator plant_generator (decode.py:LINE), variable inside, "
        "held by list STREAMS in module decode",
    ),
    "plant_closure": (
        "closure",
        "closure of plant_closure.<locals>.<lambda>, variable kept, "
        "held by list HOOKS in module decode",
    ),
    "plant_exception": (
        "traceback",
        "traceback of ValueError: variable mine of plant_exception (decode.py:LINE), "
        "held by list FAILURES in module decode",
    ),
    "plant_cycle": ("cycle", "cycle through Thing.me"),
}


def test_in_a_model_with_many_objects_all_holders_are_named_under_load(folder: Path) -> None:
    status, out, report = run(folder, MODEL, "--holders", ending=UNDER_LOAD)
    assert status == 0, out
    (process,) = report["processes"]
    found = {}
    for origin in process["origins"]:
        stack = " ".join(origin["python"])
        for plant in PLANTED:
            if f":{plant}" in stack and origin["region"] == "DRAM" and origin["remaining"] == 3:
                assert origin["holders_search"] == "done"
                found[plant] = origin["cause"], without_lines(origin["holders"])[0]
    assert found.keys() == PLANTED.keys(), out
    for plant, (cause, text) in PLANTED.items():
        assert found[plant][0] == cause and found[plant][1].startswith(text), found[plant]
    assert "no Python object" not in " ".join(out.split())


def test_what_no_python_object_holds_is_said_so(folder: Path) -> None:
    """A tensor that native code alone refers to: its count is one higher than Python knows of."""
    program = """
    import ctypes
    for _ in range(20):
        lost = new(device)
        ttnn.add(lost, lost)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))
    del lost
    """
    status, out, report = run(folder, program, "--holders", ending="ttnn.close_device(device)")
    assert (status, held(report)) == (0, (None, []))
    assert "held by no Python object that could be seen" in " ".join(out.split())


def test_tensors_without_a_buffer_are_not_asked_for_its_address(folder: Path) -> None:
    """On the host, or given back: ttnn would log a fatal error for each of them."""
    program = """
    KEPT.append(new(device))
    HOST, GONE = ttnn.from_device(KEPT[0]), ttnn.add(KEPT[0], KEPT[0])
    ttnn.deallocate(GONE)
    """
    status, out, report = run(folder, program, "--holders", ending="ttnn.close_device(device)")
    assert (status, held(report)) == (0, ("container", ["list KEPT in module decode"]))
    assert "TT_FATAL" not in out


# Each step has five lines, in three frames, that make tensors; every other one fails.
FAILING = """
def zeros(height):
    return ttnn.zeros((height, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)

def mlp(i):
    hidden = zeros(96)
    gate = zeros(128)
    if i % 2:
        raise ValueError("bad batch")

def attention(i):
    key = zeros(64)
    value = zeros(160)
    mlp(i)

def step(i):
    x = new(device)
    attention(i)

for i in range(20):
    passing = zeros(32)
    try:
        step(i)
    except ValueError as failure:
        {keep}
    del passing
"""


def callers(process: Any, places: list[int]) -> list[str]:
    """The functions whose lines made what remains, sorted."""
    frames = [process["origins"][place]["python"] for place in places]
    return sorted(next(f for f in stack if "zeros" not in f).split(":")[2] for stack in frames)


@pytest.mark.parametrize("keep", ["KEPT.append(failure)", "KEPT[:] = [failure]"])
def test_what_one_kept_exception_holds_of_five_lines_is_one_finding(folder: Path, keep: str) -> None:
    is_growing = "append" in keep
    _, out, report = run(folder, FAILING.format(keep=keep), "--holders")
    (process,) = report["processes"]
    (cause,) = process["root_causes"]
    assert cause["cause"] == "traceback"
    assert cause["text"] == "traceback of ValueError, held by list KEPT in module decode"
    assert callers(process, cause["origins"]) == ["attention", "attention", "mlp", "mlp", "new"]
    origins = [process["origins"][place] for place in cause["origins"]]
    assert {origin["suspect"] for origin in origins} == {is_growing}
    assert cause["remaining"] == (50 if is_growing else 5)
    for key in ("remaining", "remaining_bytes", "remaining_footprint_bytes"):
        assert cause[key] == sum(origin[key] for origin in origins)
    words = " ".join(out.split())
    assert f"one cause for 5 origins (1-5), {cause['remaining']} buffers, " in words
    assert words.index("one cause for") < words.index("what remains, by origin")
    assert len(re.findall(r"(?m)^ \d \S+\.py:\d+ ", out)) == 5


def test_what_one_object_holds_of_several_lines_is_one_finding(folder: Path) -> None:
    program = """
    class Model:
        def __init__(self):
            self.weights = [new(device) for _ in range(8)]
            self.cache, self.history = [], {}
        def step(self, i):
            self.cache.append(ttnn.add(self.weights[0], self.weights[1]))
            self.history[i] = ttnn.multiply(self.weights[0], self.weights[1])
    model = Model()
    others = []
    for i in range(20):
        model.step(i)
        others.append(ttnn.subtract(model.weights[0], model.weights[1]))
    """
    _, out, report = run(folder, program, "--holders")
    (process,) = report["processes"]
    (cause,) = process["root_causes"]
    assert (cause["cause"], cause["text"]) == ("container", "Model model in module decode")
    operations = {process["origins"][place]["operation"] for place in cause["origins"]}
    assert operations == {"ttnn.add", "ttnn.multiply"}  # neither the weights nor the other list
    assert "one cause for 2 origins" in " ".join(out.split())


def test_after_a_failed_allocation_the_holders_of_then_are_known(folder: Path) -> None:
    """Also of a program that is killed afterwards, without any end of its interpreter."""
    program = """
    def fill():
        while True:
            KEPT.append(ttnn.zeros((1024, 1024), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT,
                                   device=device, memory_config=ttnn.L1_MEMORY_CONFIG))
    try:
        fill()
    except RuntimeError as failure:
        assert "Out of Memory" in str(failure)
    """
    ending = "os.kill(os.getpid(), signal.SIGKILL)"
    status, out, report = run(folder, program, "--holders", ending=ending)
    assert status == 128 + signal.SIGKILL, out
    (process,) = report["processes"]
    (failure,) = process["failures"]
    owner = process["origins"][failure["owners"][0]["origin"]]
    assert owner["python"][0].endswith(":fill")
    assert (owner["cause"], owner["holders"]) == ("container", ["list KEPT in module decode"])


def test_after_a_failure_the_holders_at_the_close_are_known_too(folder: Path) -> None:
    """Of a program that is short: what was asked after the failure is not held against it."""
    program = """
    KEPT.append(new(device))
    try:
        ttnn.zeros((32768, 2048), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
                   memory_config=ttnn.L1_MEMORY_CONFIG)
        assert False, "room for 128 MiB"
    except RuntimeError as failure:
        assert "Out of Memory" in str(failure)
    CACHE["later"] = ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    """
    status, out, report = run(folder, program, "--holders", ending="ttnn.close_device(device)")
    assert status == 0, out
    (process,) = report["processes"]
    found = {origin["operation"]: origin["holders"] for origin in process["origins"]}
    assert found["ttnn.ones"] == ["dict CACHE in module decode"]


def test_a_program_with_asyncio_is_not_harmed(folder: Path) -> None:
    """
    The module _asyncio of Python 3.12 shows dead objects to whom it tells what it refers to, who
    frees them again: memory without end, or a program without one.
    """
    program = """
    import asyncio
    async def main():
        KEPT.append(new(device))
        await asyncio.sleep(0.001)
        ttnn.close_device(device)
        await asyncio.gather(*[asyncio.sleep(0.001) for _ in range(20)])
        gc.collect()
        print("went on")
    asyncio.run(main())
    asyncio.run(asyncio.sleep(0.001))
    """
    status, out, report = run(folder, program, "--holders")
    assert (status, "went on" in out) == (0, True), out
    assert held(report) == ("container", ["list KEPT in module decode"])


def test_the_program_sees_nothing_of_the_search(folder: Path) -> None:
    """Neither modules nor names, no exception is lost, and nothing is kept."""
    program = """
    def main():
        before = set(sys.modules), set(globals())
        mine = new(device)
        KEPT.append(new(device))
        try:
            raise KeyError("mine")
        except KeyError:
            ttnn.close_device(device)
            assert sys.exc_info()[0] is KeyError
        assert (set(sys.modules), set(globals())) == before, set(sys.modules) - before[0]
        assert sys.getrefcount(mine) == 2
        assert not [t for t in gc.get_objects() if type(t).__module__ == "ttmem._holders"]
    main()
    """
    status, out, report = run(folder, program, "--holders")
    assert status == 0, out


def test_the_collector_is_not_set_going_by_the_search(folder: Path) -> None:
    """It would free what waits for it, and the report would miss a leak that there was."""
    program = """
    def plant():
        node = Thing()
        node.me, node.t = node, new(device)
    gc.collect()
    gc.set_threshold(200, 1, 1)
    plant()
    gc.enable()
    ttnn.close_device(device)
    assert gc.isenabled()
    """
    status, out, report = run(folder, program, "--holders")
    assert status == 0, out
    assert held(report) == ("cycle", ["cycle through Thing.me"])
    assert leak_in(report)["remaining"] == 1


def test_a_program_with_too_many_objects_is_not_held_up(folder: Path) -> None:
    """More than are gone through: the search is unfinished, and nothing happens."""
    program = """
    HEAP = [[] for _ in range(4_100_000)]
    for _ in range(20):
        KEPT.append(new(device))
        ttnn.add(KEPT[0], KEPT[0])
    import time
    begin = time.process_time()
    ttnn.close_device(device)
    assert time.process_time() - begin < 5, time.process_time() - begin
    os._exit(0)
    """
    status, out, report = run(folder, program, "--holders")
    assert status == 0, out
    leak = leak_in(report)
    assert (leak["cause"], leak["holders"], leak["holders_search"]) == (None, [], "unfinished")
    assert "held by" not in out and "search for holders not finished" in " ".join(out.split())


def test_a_program_without_python_is_none_of_its_business(folder: Path) -> None:
    done = subprocess.run(
        [TT_MEM, "run", "--no-record", "--holders", "sh", "-c", "exit 5"],
        capture_output=True,
        text=True,
        env=environment(folder, N150, XDG_RUNTIME_DIR=str(folder)),
        check=False,
    )
    assert done.returncode == 5, done.stderr


@pytest.mark.parametrize("name, status", [("leaky", 3), ("fixed", 0)])
def test_the_examples_say_what_they_promise(folder: Path, name: str, status: int) -> None:
    examples = Path(__file__).resolve().parents[2] / "examples" / "python"
    done = subprocess.run(
        [TT_MEM, "run", "--no-record", "--holders", "--fail-on-leak", PYTHON, f"{name}.py"],
        capture_output=True,
        text=True,
        cwd=examples,
        env=environment(folder, N150, XDG_RUNTIME_DIR=str(folder)),
        timeout=PATIENCE_S * 4,
        check=False,
    )
    assert done.returncode == status, done.stderr
    words = " ".join(done.stderr.split())
    leak = "HISTORY.append(ttnn.add(x, x))", "held by list HISTORY in module leaky"
    assert all((text in words) == (status == 3) for text in leak), done.stderr
