# SPDX-License-Identifier: Apache-2.0
"""The Python package with the real ttnn: begun at any moment it is exact, and it finds holders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import provision
import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from clusters import N150, N300, T3K, Cluster
from commands import run_json, run_ok
from programs import PYTHON, Program, assert_exact, environment, tracked_holds
from test_processes import CHURN, STOP
from tracked import row_of

PACKAGE = os.environ.get("TTMEM_PACKAGE", "")
BUILD = os.environ.get("TTMEM_LIBRARY", "")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"

Start = Callable[..., Program]

# Without anything in the environment that would track it.
BARE = {
    "LD_PRELOAD": None,
    "TT_ALLOC_TRACKING_ENABLED": None,
    "PYTHONPATH": PACKAGE,
    "TTMEM_LIBRARY": BUILD,
}


def begin(start: Start, cluster: Cluster = N150, is_importing: bool = True) -> Program:
    return start(cluster, env=BARE, is_importing=is_importing)


def test_begun_before_ttnn_is_imported(start: Start, server: Any) -> None:
    program = begin(start, is_importing=False)
    program.do("import ttmem; ttmem.start(); import ttnn")
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(5)]")
    assert_exact(server, program)
    program.do("del kept[::2]; other = ttnn.add(kept[0], kept[1])")
    assert_exact(server, program)


def test_begun_with_devices_open_and_tensors_alive(start: Start, server: Any) -> None:
    program = begin(start)
    program.do("""
        device = open_device()
        kept = [tensor(device, 64, 64) for _ in range(5)]
        kept += [tensor(device, 64, 64, memory=ttnn.L1_MEMORY_CONFIG) for _ in range(5)]
        import ttmem
        ttmem.start()
    """)
    assert_exact(server, program)
    program.do("del kept[::2]; kept.append(tensor(device, 32, 32))")
    assert_exact(server, program)
    program.do("close(device); kept.clear()")
    assert_exact(server, program)
    program.do("device = open_device(); kept = [tensor(device, 64, 64)]")
    assert_exact(server, program)


def test_what_ttnn_throws_is_the_same_afterwards(start: Start, server: Any) -> None:
    program = begin(start)
    program.do("device = open_device(); import ttmem")
    program.do("""
        def failure():
            try:
                tensor(device, 1 << 17, 1 << 16)
            except RuntimeError as error:
                return str(error)
        result = None
    """)
    texts = program.do("""
        before = failure()
        ttmem.start()
        result = before, failure()
    """)
    assert "Out of Memory" in texts[0] and "backtrace:" in texts[0]
    assert texts[0].splitlines() == texts[1].splitlines()  # one process, so addresses and all
    assert_exact(server, program)


def test_begun_with_buffers_in_single_cores(start: Start, server: Any) -> None:
    """They are in the allocators of the chips, which stand beside the mesh's."""
    program = start(N300, env={**BARE, "TT_METAL_ALLOCATOR_MODE_HYBRID": "1"})
    program.do("""
        mesh = open_mesh(1, 2)
        cores = ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))
        spec = ttnn.ShardSpec(ttnn.CoreRangeSet({cores}), (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, spec)
        memory.experimental_set_per_core_allocation(True)
        few = [tensor(mesh, 64, 64, memory=memory) for _ in range(3)]
        kept = tensor(mesh, 64, 64)
        import ttmem
        ttmem.start()
    """)

    def in_cores(count: int) -> bool:
        expected = {(chip, "L1"): (count, count * 2 * 4096) for chip in (0, 1) if count}
        return tracked_holds(row_of(server, program.pid)) == {**program.holds, **expected}

    wait_for(lambda: in_cores(3), "those that were there")
    program.do("few.pop()")
    wait_for(lambda: in_cores(2), "one to end")
    program.do("close(mesh); few.clear(); kept = None")
    wait_for(lambda: in_cores(0), "all to end")
    assert_exact(server, program)


def test_begun_while_threads_allocate(start: Start, server: Any) -> None:
    program = begin(start)
    program.do(CHURN)
    program.do("import ttmem; ttmem.start()")
    program.do(STOP)
    assert_exact(server, program)
    program.do("ttmem.stop(); del kept[:20]; kept.append(tensor(device, 96, 32)); ttmem.start()")
    assert_exact(server, program)


@pytest.mark.parametrize("cluster, rows", [(N300, 1), (T3K, 2)], ids=["n300", "half of t3k"])
def test_begun_on_a_mesh_and_its_submeshes(
    start: Start, server: Any, cluster: Cluster, rows: int
) -> None:
    program = begin(start, cluster)
    program.do(f"""
        mesh = open_mesh({rows}, 2)
        kept = [tensor(mesh, 64, 64) for _ in range(3)]
        part = mesh.create_submesh(ttnn.MeshShape(1, 1))
        meshes.append(part)
        kept.append(tensor(part, 32, 32))
        import ttmem
        ttmem.start()
    """)
    assert_exact(server, program)
    program.do("del kept[1:3]")
    assert_exact(server, program)
    program.do("close(mesh); kept.append(tensor(part, 64, 64))")  # the part goes on
    assert {blocks for blocks, _ in program.holds.values()} == {2}
    assert_exact(server, program)
    program.do("close(part)")
    assert program.holds == {}
    assert_exact(server, program)


def test_names_and_contexts_reach_the_dump(start: Start, server: Any) -> None:
    program = begin(start)
    said, rows = program.do("""
        import ttmem
        ttmem.start()
        device = open_device()
        with ttmem.context("model_init"):
            first = tensor(device, 64, 64)
            with ttmem.context("attention"):
                second = tensor(device, 64, 64, memory=ttnn.L1_MEMORY_CONFIG)
        said = [ttmem.track_buffer(first, name="weights"),
                ttmem.track_buffer(second, name="scores", context="mine"),
                ttmem.track_buffer("no tensor", name="x")]
        rows = sorted([b.region, b.name, b.context] for b in ttmem.snapshot().buffers)
        result = said, rows
    """)
    assert said == [True, True, False]
    assert rows == [["DRAM", "weights", "model_init"], ["L1", "scores", "mine"]]


def test_names_contexts_and_marks_reach_the_report(folder: Path) -> None:
    script, recording = folder / "decode.py", folder / "run.ttmem"
    script.write_text("""
import ttmem, ttnn
device = ttnn.open_device(device_id=0)
KEPT = []
def keep():
    KEPT.append(ttnn.zeros((32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device))
for _ in range(30):
    with ttmem.context("decode"), ttmem.context("layer_0"):
        keep()
    ttmem.track_buffer(KEPT[-1], name="kv")
ttmem.mark("after warm-up")
""")
    done = subprocess.run(
        [TT_MEM, "run", "-o", recording, PYTHON, script],
        capture_output=True,
        text=True,
        env=environment(
            folder, N150, PYTHONPATH=PACKAGE, TTMEM_LIBRARY=BUILD, XDG_RUNTIME_DIR=str(folder)
        ),
        timeout=PATIENCE_S * 2,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(run_ok("report", recording, "--all").out.split())
    assert 'ttnn.zeros · "kv" · in decode/layer_0 · 30 were allocated' in said
    (process,) = run_json("report", recording, "--json")["processes"]
    (origin,) = process["origins"]
    assert (origin["name"], origin["context"]) == ("kv", "decode/layer_0")
    assert [mark["name"] for mark in process["marks"]] == ["after warm-up"]


def test_threads_and_tasks_have_contexts_of_their_own(start: Start, server: Any) -> None:
    program = begin(start)
    rows = program.do("""
        import asyncio, ttmem
        ttmem.start()
        device = open_device()
        kept, turn = [], threading.Barrier(3)
        def work(name):
            with ttmem.context(name):
                turn.wait()
                kept.append(tensor(device, 32, 32))
                turn.wait()
        threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(2)]
        for thread in threads:
            thread.start()
        turn.wait()
        kept.append(tensor(device, 64, 64))
        turn.wait()
        for thread in threads:
            thread.join()
        async def task(name):
            with ttmem.context(name):
                await asyncio.sleep(0)
                kept.append(tensor(device, 32, 64))
                await asyncio.sleep(0)
        async def main():
            with ttmem.context("loop"):
                await asyncio.gather(task("task 0"), task("task 1"))
                await asyncio.to_thread(lambda: kept.append(tensor(device, 32, 96)))
        asyncio.run(main())
        result = sorted([b.bytes, b.context] for b in ttmem.snapshot().buffers)
    """)
    assert rows == [
        [2048, "thread 0"],
        [2048, "thread 1"],
        [4096, "loop/task 0"],
        [4096, "loop/task 1"],
        [6144, "loop"],
        [8192, ""],
    ]


def test_tensors_without_a_buffer_are_passed_over_in_silence(folder: Path) -> None:
    program = """
import ttnn, ttmem
ttmem.start()
device = ttnn.open_device(device_id=0)
kept = ttnn.zeros((32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
host, gone = ttnn.from_device(kept), ttnn.add(kept, kept)
ttnn.deallocate(gone)
print([ttmem.track_buffer(tensor, name="x") for tensor in (kept, host, gone)])
print([bool(ttmem.who_holds(tensor)) for tensor in (kept, host, gone, kept.buffer_address())])
"""
    done = subprocess.run(
        [PYTHON, "-c", program],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, N150, PYTHONPATH=PACKAGE, TTMEM_LIBRARY=BUILD),
        timeout=PATIENCE_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.stdout == "[True, False, False]\n[True, False, False, True]\n", said
    assert "TT_FATAL" not in said


PLANTS = {
    "list": ("KEPT.append(new())", "container"),
    "dict": ("CACHE['k'] = new()", "container"),
    "semaphore": ("KEPT.append(new_semaphore())", "container"),
    "attribute": ("thing = Thing(); thing.layers = [new()]; KEPT.append(thing)", "container"),
    "closure": ("KEPT.append((lambda t: lambda: t)(new()))", "closure"),
    "cycle": ("node = Thing(); node.me = node; node.t = new(); del node", "cycle"),
    "traceback": ("fail()", "traceback"),
    "generator": ("steps = generate(); next(steps)", "frame"),
    "thread": ("run_thread()", "frame"),
}


@pytest.mark.parametrize("what", PLANTS)
def test_each_holder_is_found(start: Start, what: str) -> None:
    plant, kind = PLANTS[what]
    program = begin(start)
    program.do("""
        import gc, sys, ttmem
        device = open_device()
        KEPT, CACHE, addresses, stop, there = [], {}, [], threading.Event(), threading.Event()
        class Thing:
            pass
        def new():
            made = tensor(device, 32, 32)
            addresses.append(made.buffer_address())
            return made
        def new_semaphore():
            cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))})
            made = ttnn.create_global_semaphore(device, cores, 0, ttnn.BufferType.L1)
            addresses.append(ttnn.get_global_semaphore_address(made))
            return made
        def generate():
            inside = new()
            yield 1
        def raises():
            inside = new()
            raise ValueError
        def fail():
            try:
                raises()
            except ValueError as failure:
                sys.last_value = failure
        def run_thread():
            def work():
                mine = new()
                there.set()
                stop.wait()
            threading.Thread(target=work, daemon=True).start()
            there.wait()
        gc.disable()
    """)
    found = program.do(f"""
        {plant}
        result = [[h.kind, str(h)] for h in ttmem.who_holds(addresses[0])]
        stop.set()
    """)
    assert [k for k, _ in found] == [kind], found


def run_examples(folder: Path, *args: str) -> tuple[int, str]:
    """The tests of examples/python, whose conftest imports ttnn."""
    place = folder / "examples"
    if not place.exists():
        shutil.copytree(EXAMPLES, place, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        site = provision.pytest_folder(PYTHON)
    except provision.Unavailable as reason:
        pytest.skip(str(reason))
    env = environment(
        folder,
        N150,
        PYTHONPATH=f"{PACKAGE}:{site}",
        TTMEM_LIBRARY=BUILD,
        XDG_RUNTIME_DIR=str(folder),
    )
    command = [PYTHON, "-m", "pytest", "-q", "-p", "ttmem.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *args, "tests"],
        capture_output=True,
        text=True,
        cwd=place,
        env=env,
        timeout=PATIENCE_S * 4,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_plugin_fails_the_leaky_example_alone(folder: Path, workers: str) -> None:
    status, out = run_examples(folder, "--ttmem", "-n", workers)
    assert status == 1 and "1 failed, 1 passed" in out, out
    expected = (
        "device memory: test_leaky left 4 buffers behind "
        "(32.0 KiB requested, 96.0 KiB on device 0)",
        "  leaky.py:36 decode_step  HISTORY.append(ttnn.add(x, x))  ttnn.add  DRAM  4×, 96.0 KiB",
        "    from test_decode.py:19 test_leaky  leaky.decode_step(device, weights)",
        "  held by: list HISTORY in module leaky",
    )
    assert "\n".join(f"E   {line}" for line in expected) in out, out
    table = [line.split() for line in out[out.index("peak DRAM") :].splitlines()[1:3]]
    assert [row[-1] for row in table] == [
        f"tests/test_decode.py::test_{n}" for n in ("leaky", "fixed")
    ]
    assert table[0][-3:-1] == ["96.0", "KiB"] and table[1][-3:-1] == ["0", "B"]
    assert (folder / "examples/.ttmem/tests-test_decode.py-test_leaky.ttmem").exists()


def test_a_limit_on_the_peak_is_that_of_the_runtime(folder: Path) -> None:
    """Of the fixed example: a step holds its input and one result of 24 KiB each at most."""
    status, out = run_examples(folder, "--ttmem", "-k", "fixed")
    assert status == 0, out
    (row,) = [line.split() for line in out.splitlines() if line.endswith("::test_fixed")]
    assert row[:2] == ["48.0", "KiB"], out


RESHAPE = """
import ttmem
import ttnn


def reshape(device, rows):
    x = ttnn.zeros(
        (1, rows, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device
    )
    return ttnn.reshape(x, (1, rows // 2, 128))


def test_reshape(device):
    reshape(device, 64)


def test_reshape_in_a_block(device):
    with ttmem.no_leaks():
        reshape(device, 96)


def test_reshape_counted_in_a_block(device):
    with ttmem.no_leaks(count_program_cache=True):
        reshape(device, 128)
"""


def test_the_plugin_counts_what_the_program_cache_keeps_only_if_asked_to(folder: Path) -> None:
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "examples/tests/test_reshape.py").write_text(RESHAPE, encoding="utf-8")
    words = ("--ttmem-fail-on-leak", "-k", "reshape")
    status, out = run_examples(folder, *words)
    assert status == 1 and "1 failed, 2 passed" in out, out
    assert "FAILED tests/test_reshape.py::test_reshape_counted_in_a_block" in out
    status, out = run_examples(folder, *words, "--ttmem-count-program-cache")
    assert status == 1 and "3 failed" in out, out
    assert "kept by the program cache" in out
    assert "held by: the program cache, until device.clear_program_cache()" in out
