# SPDX-License-Identifier: Apache-2.0
"""The package in plain Python: what it tells, what it is told, and that it stays out of the way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from basics import wait_for

from scripts import BUILD, environment, run_script

CONTEXTS = """
    result_of = lambda: {b.name: b.context for b in ttmem.snapshot().buffers}
"""


def test_nothing_happens_where_nothing_is_tracked(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        with ttmem.context("a"):
            ttmem.mark("m")
            told = ttmem.allocate_with_context(0, 100, "DRAM", 1, name="x")
            named = ttmem.track_buffer(object(), name="x")
        ttmem.deallocate(1, "DRAM")
        ttmem.stop()
        with ttmem.no_leaks():
            before = ttmem.snapshot()
        change = ttmem.diff(before, ttmem.snapshot())
        held = ttmem.who_holds(4096)
        live = [before.is_tracked, len(before.buffers), change.count, held]
        result = [told, named, ttmem.is_active(), live, ttmem.report()]
        """,
    )
    assert outcome[:4] == [False, False, False, [False, 0, 0, []]]
    assert outcome[4] == "not tracked: call ttmem.start(), or use `tt-mem run`"


def test_the_library_stays_out_of_programs_that_only_import_us(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        with ttmem.context("a"):
            ttmem.mark("b")
        result = "libttmem" in open("/proc/self/maps").read()
        """,
    )
    assert outcome is False


def test_without_any_library_start_says_what_lacks(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        try:
            ttmem.start()
            result = ""
        except ttmem.Inactive as reason:
            result = str(reason)
        """,
        TTMEM_LIBRARY=str(folder),
        PATH="/nowhere",
    )
    assert "libttmem-hook.so" in outcome


def test_contexts_nest_and_belong_to_threads(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import threading, ttmem
        ttmem.start()
        def tell(name):
            ttmem.allocate_with_context(0, 100, "DRAM", len(name) * 1000 + ord(name[-1]), name)
        @ttmem.context("decorated")
        def decorated():
            tell("in_function")
        both = threading.Barrier(2)
        def work(name):
            with ttmem.context(name):
                both.wait()
                tell(name)
                both.wait()
        with ttmem.context("outer"):
            with ttmem.context("inner"):
                tell("deep")
            tell("flat")
            decorated()
            threads = [threading.Thread(target=work, args=(n,)) for n in ("t1", "thread2")]
            [t.start() for t in threads]
            [t.join() for t in threads]
        tell("none")
        result = {b.name: b.context for b in ttmem.snapshot().buffers}
        """,
    )
    assert outcome == {
        "deep": "outer/inner",
        "flat": "outer",
        "in_function": "outer/decorated",
        "t1": "t1",
        "thread2": "thread2",
        "none": "",
    }


ASYNC = """
    import asyncio, ttmem
    ttmem.start()
    ids = iter(range(1, 100))
    def tell(name):
        ttmem.allocate_with_context(0, 100, "DRAM", next(ids), name)
    {work}
    async def main():
        tell("before")
        await asyncio.gather(work("a"), work("b"), idle())
        tell("after")
    async def idle():
        for n in range(6):
            tell(f"idle{{n}}")
            await asyncio.sleep(0)
    asyncio.run(main())
    tell("outside")
    result = {{b.name: b.context for b in ttmem.snapshot().buffers}}
"""

WITH = """
    async def work(name):
        with ttmem.context(name):
            for n in range(3):
                tell(f"{name}{n}")
                await asyncio.sleep(0)
                with ttmem.context("in"):
                    tell(f"{name}-in{n}")
                    await asyncio.sleep(0)
                    tell(f"{name}-in-late{n}")
        tell(f"{name}-out")
"""

DECORATED = """
    async def work(name):
        async def body():
            for n in range(3):
                tell(f"{name}{n}")
                await asyncio.sleep(0)
                await ttmem.context("in")(step)(n)
        async def step(n):
            tell(f"{name}-in{n}")
            await asyncio.sleep(0)
            tell(f"{name}-in-late{n}")
        await ttmem.context(name)(body)()
        tell(f"{name}-out")
"""


@pytest.mark.parametrize("work", [WITH, DECORATED], ids=["with", "decorated"])
def test_tasks_that_take_turns_keep_their_contexts(folder: Path, work: str) -> None:
    outcome = run_script(folder, ASYNC.format(work=work))
    expected = {"before": "", "after": "", "outside": "", **{f"idle{n}": "" for n in range(6)}}
    for name in "ab":
        expected[f"{name}-out"] = ""
        for n in range(3):
            expected[f"{name}{n}"] = name
            expected[f"{name}-in{n}"] = expected[f"{name}-in-late{n}"] = f"{name}/in"
    assert outcome == expected


def test_a_decorated_generator_has_its_context_while_it_runs(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        ttmem.start()
        def tell(name, number):
            ttmem.allocate_with_context(0, 100, "DRAM", number, name)
        @ttmem.context("gen")
        def numbers():
            tell("first", 1)
            got = yield 1
            tell(got, 2)
            return 7
        steps = numbers()
        next(steps)
        tell("between", 3)
        try:
            steps.send("second")
        except StopIteration as end:
            value = end.value
        result = [value, {b.name: b.context for b in ttmem.snapshot().buffers}]
        """,
    )
    assert outcome == [7, {"first": "gen", "second": "gen", "between": ""}]


def test_generators_that_take_turns_leave_their_own_contexts(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        ttmem.start()
        ids = iter(range(1, 100))
        def tell(name):
            ttmem.allocate_with_context(0, 100, "DRAM", next(ids), name)
        def batches(name, count):
            with ttmem.context(name), ttmem.context("in"):
                for n in range(count):
                    yield n
        with ttmem.context("outer"):
            first, second, third = (batches(name, 1) for name in "abc")
            [next(batch) for batch in (first, second, third)]
            tell("all")
            second.close()
            tell("without b")
            first.close()
            tell("without a")
            with ttmem.context("mine"):
                third.close()
                tell("without c")
            tell("none of them")
        for _ in zip(batches("train", 2), batches("labels", 2)):
            pass
        tell("after")
        result = {b.name: b.context for b in ttmem.snapshot().buffers}
        """,
    )
    assert outcome == {
        "all": "outer/a/in/b/in/c/in",
        "without b": "outer/a/in/c/in",
        "without a": "outer/c/in",
        "without c": "outer/mine",
        "none of them": "outer",
        "after": "",
    }


def test_a_decorated_async_generator_has_its_context_while_it_runs(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import asyncio, inspect, ttmem
        ttmem.start()
        ids = iter(range(1, 100))
        def tell(name):
            ttmem.allocate_with_context(0, 100, "DRAM", next(ids), name)
        @ttmem.context("gen")
        async def numbers():
            tell("first")
            await asyncio.sleep(0)
            tell("waited")
            try:
                got = yield 1
                tell(str(got))
                yield 2
            except ValueError:
                tell("caught")
            try:
                yield 3
            finally:
                tell("closed")
        async def other():
            tell("other")
        async def main():
            steps = numbers()
            task = asyncio.create_task(other())
            items = [await steps.asend(None)]
            tell("between")
            items += [await steps.asend("sent"), await steps.athrow(ValueError("x"))]
            await steps.aclose()
            tell("after")
            items += [item async for item in numbers()]
            await task
            return items
        items = asyncio.run(main())
        contexts = {b.name: b.context for b in ttmem.snapshot().buffers}
        result = [items, contexts, inspect.isasyncgenfunction(numbers)]
        """,
    )
    outside = dict.fromkeys(("other", "between", "after"), "")
    inside = dict.fromkeys(("first", "waited", "sent", "caught", "closed"), "gen")
    inside["None"] = "gen"
    assert outcome == [[1, 2, 3, 1, 2, 3], {**outside, **inside}, True]


POOL = """
    import asyncio, concurrent.futures, contextvars, threading, ttmem
    ttmem.start()
    ids = iter(range(1, 100))
    def tell(name):
        ttmem.allocate_with_context(0, 100, "DRAM", next(ids), name)
    def nested(name):
        tell(name)
        with ttmem.context("in"):
            tell(f"{{name}}-in")
        tell(f"{{name}}-late")
    pool = concurrent.futures.ThreadPoolExecutor(1)
    {work}
    pool.submit(tell, "later").result()
    tell("outside")
    result = {{b.name: b.context for b in ttmem.snapshot().buffers}}
"""

TO_THREAD = """
    async def main():
        asyncio.get_running_loop().set_default_executor(pool)
        with ttmem.context("task"):
            await asyncio.to_thread(nested, "a")
            tell("on")
        await asyncio.get_running_loop().run_in_executor(None, tell, "plain")
    asyncio.run(main())
    pool = concurrent.futures.ThreadPoolExecutor(1)
"""


def test_what_a_task_has_done_in_a_thread_has_its_context(folder: Path) -> None:
    outcome = run_script(folder, POOL.format(work=TO_THREAD))
    assert outcome == {
        "a": "task",
        "a-in": "task/in",
        "a-late": "task",
        "on": "task",
        "plain": "",
        "later": "",
        "outside": "",
    }


def test_a_task_that_began_inside_a_context_passes_it_on_to_a_thread(folder: Path) -> None:
    work = """
    async def main():
        await asyncio.to_thread(tell, "a")
    with ttmem.context("serve"):
        asyncio.run(main())
    """
    outcome = run_script(folder, POOL.format(work=work))
    assert outcome == {"a": "serve", "later": "", "outside": ""}


def test_a_copied_context_leaves_nothing_in_a_thread_of_a_pool(folder: Path) -> None:
    """As anyio runs functions: the copy is not told of, and nobody says when it ends."""
    work = """
    with ttmem.context("outer"):
        pool.submit(contextvars.copy_context().run, nested, "a").result()
    """
    outcome = run_script(folder, POOL.format(work=work))
    assert outcome == {"a": "", "a-in": "outer/in", "a-late": "", "later": "", "outside": ""}


def test_contexts_that_were_entered_before_tracking_began_can_be_left(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        def tell(name, number):
            ttmem.allocate_with_context(0, 100, "DRAM", number, name)
        with ttmem.context("before"):
            ttmem.start()
            with ttmem.context("inside"):
                tell("a", 1)
            tell("b", 2)
        tell("c", 3)
        with ttmem.context("after"):
            tell("d", 4)
        result = {b.name: b.context for b in ttmem.snapshot().buffers}
        """,
    )
    assert outcome == {"a": "inside", "b": "", "c": "", "d": "after"}


BY_ALL_MEANS = """
    import sys, ttnn, ttmem
    assert not ttmem.is_active()
    ttmem.start()
    assert ttmem.is_active()
    first, second = ttnn.zeros(2048), ttnn.zeros(region="L1")
    named = [ttmem.track_buffer(first, name="wéights"),
             ttmem.track_buffer(second, context="mine"),
             ttmem.track_buffer(second, name=5), ttmem.track_buffer(None, name="x")]
    with ttmem.context("outer"):
        mesh = ttmem.allocate_with_context([0, 1], 64, "DRAM", 99, name="mesh", footprint=128)
    wrong = [ttmem.allocate_with_context(*a) for a in (
        (0, -1, "DRAM", 1), (0, 1, "NOWHERE", 1), ([], 1, "DRAM", "x"), (5000, 1, "DRAM", 1))]
    ttmem.mark("a mark")
    rows = [[b.id, b.region, b.bytes, b.footprint_bytes, list(b.device_ids), b.name, b.context]
            for b in ttmem.snapshot().buffers]
    del first
    ttmem.reset_peaks()
    peak = ttmem.snapshot().peaks[0, "DRAM"]
    ttmem.deallocate(99, "DRAM")
    left = [b.id for b in ttmem.snapshot().buffers]
    ttmem.stop()
    means = type(ttmem._library._loaded).__name__
    result = means, named, mesh, wrong, sorted(rows), peak, left, ttmem.is_active()
"""


@pytest.mark.parametrize("has_module", [True, False], ids=["module in C", "ctypes"])
def test_the_library_is_called_by_either_means(folder: Path, has_module: bool) -> None:
    native = folder / "native"
    native.mkdir()
    for name in ("tt-mem", "libttmem.so.0", "libttmem-hook.so", "libttmem-metal.so"):
        (native / name).symlink_to(Path(BUILD, name))
    if has_module:
        (native / "_fast.abi3.so").symlink_to(Path(BUILD, "_fast.abi3.so"))
    means, *rest = run_script(folder, BY_ALL_MEANS, TTMEM_LIBRARY=str(native))
    assert means == ("module" if has_module else "CtypesLibrary")
    assert rest == [
        [True, True, False, False],
        True,
        [False] * 4,
        [
            [1, "DRAM", 2048, 2048, [0], "wéights", ""],
            [2, "L1", 4096, 4096, [0], "", "mine"],
            [99, "DRAM", 64, 128, [0, 1], "mesh", "outer"],
        ],
        128,
        [2],
        False,
    ]


def test_a_tensor_is_named_by_its_place(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        ttmem.start()
        import ttnn
        kept = [ttnn.zeros(), ttnn.zeros(), ttnn.zeros(region="L1")]
        said = [ttmem.track_buffer(kept[1], name="kv", context="cache"),
                ttmem.track_buffer(kept[2], name="act"), ttmem.track_buffer(None, name="x")]
        rows = {b.id: [b.name, b.context] for b in ttmem.snapshot().buffers}
        result = [said, rows]
        """,
    )
    assert outcome[0] == [True, True, False]
    assert outcome[1] == {"1": ["", ""], "2": ["kv", "cache"], "3": ["act", ""]}


def test_differences_and_blocks_that_leave_something(folder: Path) -> None:
    outcome = run_script(
        folder,
        """
        import ttmem
        ttmem.start()
        import ttnn
        KEPT = [ttnn.zeros()]
        before = ttmem.snapshot()
        KEPT.append(ttnn.zeros(1000))
        KEPT.append(ttnn.zeros(500, "L1"))
        del KEPT[0]
        change = ttmem.diff(before, ttmem.snapshot())
        with ttmem.no_leaks():
            ttnn.zeros()
        with ttmem.no_leaks(limit=4096):
            KEPT.append(ttnn.zeros())
        with ttmem.no_leaks(limit="4 KiB"):
            KEPT.append(ttnn.zeros())
        native = ""
        try:
            with ttmem.no_leaks(limit="4 KiB"):
                ttmem.allocate_with_context(0, 4097, "DRAM", 1000)
        except ttmem.LeakError as leak:
            native = str(leak)
        text = ""
        try:
            with ttmem.no_leaks():
                KEPT.append(ttnn.zeros(2048))
        except ttmem.LeakError as leak:
            text = str(leak)
        passed_on = ""
        try:
            with ttmem.no_leaks():
                KEPT.append(ttnn.zeros())
                raise KeyError("mine")
        except KeyError as failure:
            passed_on = str(failure)
        sizes = change.count, change.bytes, len(change.gone)
        result = [*sizes, text, passed_on, ttmem.report(), native]
        """,
    )
    assert outcome[:3] == [2, 1500, 1]
    head, *rest = outcome[3].splitlines()
    assert head == (
        "device memory: the block left 1 buffer behind (2.0 KiB requested, 2.0 KiB on device 0)"
    )
    assert "  held by: list KEPT in module script" in rest
    assert rest[0].endswith("  DRAM  2.0 KiB"), rest  # of one alone too
    assert outcome[4] == "'mine'"
    assert outcome[5].startswith("7 allocations live")
    assert outcome[6].endswith("\n  held by: no Python object that can be seen")


def test_the_cells_of_a_notebook_are_shown(folder: Path) -> None:
    """As IPython runs them: under the name of a file that is not there."""
    outcome = run_script(
        folder,
        """
        import linecache, sys, ttmem, ttnn
        ttmem.start()
        del __file__
        sys.argv, get_ipython, KEPT = ["ipykernel_launcher.py"], None, []
        def run(cell, path):
            linecache.cache[path] = len(cell), None, cell.splitlines(True), path
            exec(compile(cell, path, "exec"), globals())
        run("def keep():\\n    KEPT.append(ttnn.zeros(2048))\\n", "/cells/1/17.py")
        text = ""
        try:
            with ttmem.no_leaks():
                run("# the second\\nkeep()\\n", "/cells/1/42.py")
        except ttmem.LeakError as leak:
            text = str(leak)
        result = text.splitlines()
        """,
    )
    assert "    from 17.py:2 keep  KEPT.append(ttnn.zeros(2048))" in outcome
    assert "  held by: list KEPT in module __main__" in outcome


def test_a_source_file_that_is_no_regular_file_is_not_waited_for(folder: Path) -> None:
    """A module may give itself any file; to read a FIFO is to wait for its writer."""
    outcome = run_script(
        folder,
        """
        import os, signal, sys, types, ttmem
        signal.alarm(20)
        os.mkfifo("pipe.py")
        odd = types.ModuleType("odd")
        odd.__file__ = os.path.abspath("pipe.py")
        sys.modules["odd"] = odd
        ttmem.start()
        code = "import ttmem\\nttmem.allocate_with_context(0, 2048, 'DRAM', 7, address=65536)"
        exec(compile(code, odd.__file__, "exec"), vars(odd))
        text = ttmem.report()
        origins = ttmem.snapshot().origins
        result = [text, [[c.origin.line, c.origin.code] for c in origins]]
        """,
    )
    assert "pipe.py:2" in outcome[0]
    assert [["pipe.py:2:<module>", ""]] == outcome[1]


def test_marks_reach_a_server_that_was_there(folder: Path, server: object) -> None:
    run_script(
        folder,
        """
        import os, subprocess, ttmem
        ttmem.start()
        ttmem.allocate_with_context([0, 1], 100, "L1", 5, name="both")
        ttmem.mark("after warm-up")
        rows = ttmem.snapshot().buffers
        result = [rows[0].device_ids, rows[0].name]
        from ttmem import _server
        marks = [m["name"] for m in _server.row_of_this_process()["marks"]]
        assert marks == ["after warm-up"], marks
        assert _server._own is None
        ttmem.deallocate(5, "L1")
        assert ttmem.snapshot().buffers == ()
        """,
        TTMEM_SOCKET=server.socket,  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_server_of_our_own_ends_with_the_program(folder: Path, end: int | None) -> None:
    code = """
import sys, ttmem
ttmem.start()
ttmem.allocate_with_context(0, 100, "DRAM", 1)
assert len(ttmem.snapshot().buffers) == 1
from ttmem import _server
print(_server._own.socket, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder),
    ) as program:
        assert program.stdin and program.stdout
        socket = program.stdout.readline().strip()
        assert os.path.exists(socket)
        if end is None:
            program.stdin.close()
        else:
            program.send_signal(end)
        program.wait()
    wait_for(lambda: not os.path.exists(socket), "the server to be gone")


HOLDERS = {
    "a list": ("KEPT.append(new())", "container", "list KEPT in module script"),
    "a dictionary": ("CACHE['k'] = new()", "container", "dict CACHE in module script"),
    "an attribute": (
        "global MODEL; MODEL = Thing(); MODEL.layers = [{'k': new()}]",
        "container",
        "Thing MODEL in module script: MODEL.layers[0]['k']",
    ),
    "a class": ("Thing.shared = new()", "container", "Tensor Thing.shared in module script"),
    "a list of a class": (
        "Thing.seen = [{'k': new()}]",
        "container",
        "list Thing.seen in module script: Thing.seen[0]['k']",
    ),
    "a default argument": (
        "stats([new()])",
        "container",
        "default of stats, argument seen, held by function stats in module script",
    ),
    "a keyword's default": (
        "count(new())",
        "container",
        "default of count, argument seen, held by function count in module script",
    ),
    "a thread's own": (
        "LOCAL.seen = [new()]",
        "container",
        "_local LOCAL in module script: LOCAL.seen[0]",
    ),
    "a key that has an address": (
        "CACHE[Thing()] = [new()]",
        "container",
        "dict CACHE in module script: CACHE[Thing …][0]",
    ),
    "a key of several": (
        "CACHE['k', 1, Thing] = [new()]",
        "container",
        "dict CACHE in module script: CACHE['k', 1, Thing][0]",
    ),
    "tuples": (
        "global ROWS; ROWS = ((frozenset([new()]),),)",
        "container",
        "tuple ROWS in module script: ROWS[0][0][…]",
    ),
    "a coroutine that waits": (
        "wait()",
        "frame",
        "coroutine waits (script.py), variable inside, held by coroutine WAITS in module script",
    ),
    "a closure": (
        "global FUNCTION; FUNCTION = (lambda t: lambda: t)(new())",
        "closure",
        "closure of plant.<locals>.<lambda>.<locals>.<lambda>, variable t, "
        "held by function FUNCTION in module script",
    ),
    "a cycle": (
        "node = Thing(); node.me = node; node.t = new()",
        "cycle",
        "cycle through Thing.me",
    ),
    "a generator": (
        "global STEPS; STEPS = steps(); next(STEPS)",
        "frame",
        "generator steps (script.py), variable inside, held by generator STEPS in module script",
    ),
    "the last exception": (
        "fail()",
        "traceback",
        "traceback of last exception: variable inside of raises (script.py)",
    ),
    "another thread": (
        "run_thread()",
        "frame",
        "variable mine of work (script.py) in thread worker",
    ),
}


# All objects are gone through by C, or by Python where there is no C.
SEARCHES = {
    "C": "import ttmem._holders; assert len(ttmem._holders._native()) == 5",
    "Python": "import ttmem._holders; ttmem._holders.NATIVE = {}",
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("what", HOLDERS)
def test_holders_are_found(folder: Path, what: str, search: str) -> None:
    plant, kind, text = HOLDERS[what]
    code = f"""
        import gc, sys, threading, ttmem
        import ttnn
        {SEARCHES[search]}
        KEPT, CACHE, addresses, stop, there = [], {{}}, [], threading.Event(), threading.Event()
        class Thing:
            pass
        def new():
            tensor = ttnn.zeros()
            addresses.append(tensor.buffer_address())
            return tensor
        def plant():
            {plant}
        def steps():
            inside = new(); yield 1
        async def waits():
            inside = [new()]
            await Later()
        class Later:
            def __await__(self): yield
        def wait():
            global WAITS
            WAITS = waits(); WAITS.send(None)
        def stats(tensors, scale=1, seen=[]):
            seen.extend(tensors)
        def count(tensor, *, seen={{}}):
            seen["k"] = tensor
        LOCAL = threading.local()
        def raises():
            inside = new()
            raise ValueError
        def fail():
            try: raises()
            except ValueError as failure: sys.last_value = failure
        def run_thread():
            def work():
                mine = new(); there.set()
                stop.wait()
            threading.Thread(target=work, name="worker").start()
            there.wait()
        gc.disable()
        plant()
        found = ttmem.who_holds(addresses[0])
        stop.set()
        result = [found.search, [[h.kind, str(h)] for h in found]]
        """
    state, found = run_script(folder, code)
    assert state == "done"
    assert [[k, re.sub(r":\d+\)", ")", said)] for k, said in found] == [[kind, text]]


@pytest.mark.parametrize("search", SEARCHES)
def test_what_nobody_holds_is_said_so(folder: Path, search: str) -> None:
    outcome = run_script(
        folder,
        f"""
        import ttmem, ttnn
        {SEARCHES[search]}
        LEFT = [ttnn.zeros()]
        address = LEFT[0].buffer_address()
        def holds():
            mine = LEFT[0]
            first = [str(h) for h in ttmem.who_holds(mine)]
            del mine
            return first
        first = holds()
        second = [str(h) for h in ttmem.who_holds(address)]
        LEFT.clear()
        third = [str(h) for h in ttmem.who_holds(address)]
        fourth = ttmem.who_holds(12345)
        result = [first, second, third, [fourth, fourth.search]]
        """,
    )
    assert sorted(outcome[0])[0] == "list LEFT in module script"
    assert "variable mine of holds (script.py:8)" in outcome[0]
    assert outcome[1:] == [["list LEFT in module script"], [], [[], "done"]]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_that_reaches_its_limit_does_not_say_that_nothing_holds_it(
    folder: Path, search: str
) -> None:
    found, state, texts = run_script(
        folder,
        f"""
        import ttmem, ttnn
        {SEARCHES[search]}
        from ttmem import _snapshot
        KEPT = [ttnn.zeros()]
        found = ttmem.who_holds(KEPT[0])
        result = [found, found.search, _snapshot._held_by([found])]
        """,
        TTMEM_HOLDERS_CPU_SECONDS="0",
    )
    assert (found, state) == ([], "unfinished")
    assert texts == ["  search for holders not finished"]


def test_the_limit_of_a_search_is_cpu_time(folder: Path) -> None:
    """A program that has to wait for its turn longer than that is searched all the same."""
    found = run_script(
        folder,
        """
        import time
        import ttmem, ttnn
        KEPT = [ttnn.zeros()]
        address_of = ttnn.Tensor.buffer_address
        def slow(tensor):
            time.sleep(1.1)
            return address_of(tensor)
        ttnn.Tensor.buffer_address = slow
        found = ttmem.who_holds(address_of(KEPT[0]))
        result = [found.search, [str(h) for h in found]]
        """,
        TTMEM_HOLDERS_CPU_SECONDS="1",
    )
    assert found == ["done", ["list KEPT in module script"]]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_way_back_that_is_long_or_wide_is_gone_to_its_end(folder: Path, search: str) -> None:
    """Behind 300 links, and behind 1000 objects that nothing else holds."""
    found = run_script(
        folder,
        f"""
        import gc
        import ttmem, ttnn
        {SEARCHES[search]}
        gc.disable()
        def link(links, tensor):
            chain = [tensor]
            for _ in range(links): chain = [chain]
            return chain
        def cross(tensor):
            around = [[tensor] for _ in range(1000)]
            for one in around: one.append(around)
        first, lost = ttnn.zeros(), ttnn.zeros()
        addresses = [first.buffer_address(), lost.buffer_address()]
        CHAIN = link(300, first)
        cross(lost)
        del first, lost
        result = [[found.search, [h.kind for h in found], [h.text for h in found]]
                  for found in map(ttmem.who_holds, addresses)]
        """,
    )
    assert found == [
        ["done", ["container"], ["list CHAIN in module script"]],
        ["done", ["cycle"], ["cycle through list[1]"]],
    ]


def test_c_and_python_find_the_same_referrers(folder: Path) -> None:
    """Of each object on the ways back."""
    differing, compared = run_script(
        folder,
        """
        import collections, functools, gc, json, types, unittest.mock
        import ttmem, ttnn
        from ttmem import _holders
        gc.disable()
        class Slotted:
            __slots__ = ("a", "b")
        class Thing:
            pass
        KEPT = [ttnn.zeros() for _ in range(20)]
        SLOTS = Slotted(); SLOTS.a = KEPT[0]
        THING = Thing(); THING.t = KEPT[1]; THING.more = {"k": (KEPT[2], frozenset([KEPT[3]]))}
        Thing.of_class = KEPT[4]
        PART = functools.partial(print, KEPT[5], key=KEPT[6])
        QUEUE = collections.deque([KEPT[7], [KEPT[8]]])
        DEFAULT = collections.defaultdict(list, k=KEPT[9])
        BOUND = types.MethodType(lambda self: 0, KEPT[10])
        SETS = {KEPT[11], (KEPT[12],)}
        def outer(t): return lambda: t
        INNER = outer(KEPT[13])
        def steps(t): yield t
        STEPS = steps(KEPT[14]); next(STEPS)
        CYCLE = [KEPT[15]]; CYCLE.append(CYCLE); CYCLE = None
        VIEW, ITEMS = {"k": KEPT[16]}.values(), iter([KEPT[17]])
        native = _holders._native()
        fast = _holders._all_objects(60.0)
        assert type(fast) is _holders._Graph
        _holders.NATIVE = {}
        slow = _holders._all_objects(60.0)
        def name(thing):
            return [type(thing).__name__, id(thing)]
        tensors = native["heap_tensors"](fast._graph)
        ours = {id(fast), id(fast.__dict__), id(tensors), *map(id, fast.__dict__.values())}
        ours.update(id(t) for t in gc.get_objects() if type(t) is list and len(t) > 5000)
        differing, compared, level, seen = [], 0, list(KEPT), set()
        for _ in range(12):
            slow.learn_holders(level); fast.learn_holders(level)
            after = []
            for thing in level:
                a = {tuple(name(t)) for t in slow.holders_of(thing)}
                b = {tuple(name(t)) for t in fast.holders_of(thing)}
                if len(a) >= 1024 or id(thing) in ours: continue
                missing = [n for n in a - b if n[1] not in ours]
                if missing or b - a: differing.append([name(thing), missing, list(b - a)])
                after += [t for t in slow.holders_of(thing) if id(t) not in seen]
                compared += len(a & b)
            seen.update(map(id, after))
            level = [t for t in after if not isinstance(t, (type, types.ModuleType))][:500]
        fast.forget(); slow.forget(); tensors.clear()
        result = [differing, compared]
        """,
    )
    assert compared > 40
    assert differing == []


def test_all_names_of_a_module_that_hold_it_are_told(folder: Path) -> None:
    found = run_script(
        folder,
        """
        import ttmem, ttnn
        KEPT, CACHE = [ttnn.zeros()], {}
        CACHE["k"] = KEPT[0]
        result = sorted(str(h) for h in ttmem.who_holds(KEPT[0]))
        """,
    )
    assert found == ["dict CACHE in module script", "list KEPT in module script"]


@pytest.mark.parametrize("search", SEARCHES)
def test_holders_of_one_object_have_the_same_root(folder: Path, search: str) -> None:
    """An exception that keeps two frames, one object, a cycle that is entered at two places."""
    found = run_script(
        folder,
        f"""
        import gc
        import ttmem, ttnn
        from ttmem import _holders
        {SEARCHES[search]}
        gc.disable()
        class Thing:
            pass
        def inner():
            second = ttnn.zeros()
            raise ValueError
        def outer():
            first = ttnn.zeros()
            inner()
        def cycle():
            left, right = Thing(), Thing()
            left.other, right.other = right, left
            left.t, right.t = ttnn.zeros(), ttnn.zeros()
        KEPT = []
        try: outer()
        except ValueError as failure: KEPT.append(failure)
        MODEL = Thing()
        MODEL.k, MODEL.v = ttnn.zeros(), [ttnn.zeros()]
        cycle()
        question = "".join(f"{{n}} 0 0 {{n}}\\n" for n in range(1, 7))
        lines = _holders.find(question.encode()).decode().splitlines()
        result = [[line.split()[2][0], line.split("\\x1f")[1].split()[0]] for line in lines]
        """,
    )
    assert [state for state, _ in found] == ["0"] * 6
    first, second, k, v, left, right = (root for _, root in found)
    assert first == second and k == v and left == right
    assert len({first, k, left}) == 3


def test_no_type_is_traversed_whose_answer_could_do_harm(folder: Path) -> None:
    """As below, of the search by C."""
    plain, found = run_script(
        folder,
        """
        import asyncio, gc, types
        import ttmem, ttnn
        from ttmem import _holders
        KEPT, plain = [ttnn.zeros()], set()
        native = dict(_holders._native())
        def record(objects, kinds, pairs, limit):
            plain.update(kind.__name__ for kind, flags in kinds if flags & 1)
            return native["heap_graph"](objects, kinds, pairs, limit)
        _holders.NATIVE = {**native, "heap_graph": record}
        found = [str(h) for h in ttmem.who_holds(KEPT[0])]
        result = [sorted(plain), found]
        """,
    )
    assert {"list", "dict", "tuple"} <= set(plain)
    assert not {"module", "type", "ABCMeta", "frame", "generator", "coroutine"} & set(plain)
    assert found == ["list KEPT in module script"]


def test_nobody_is_asked_whose_answer_could_do_harm(folder: Path) -> None:
    """
    Modules tell of whatever their C code has, as the asyncio of Python 3.12 does of dead objects,
    which are freed once more when somebody lets go of them. Classes tell of their modules.
    """
    asked, found = run_script(
        folder,
        """
        import gc, types
        import ttmem, ttnn
        import ttmem._holders
        ttmem._holders.NATIVE = {}
        KEPT = [ttnn.zeros()]
        get_referents, asked = gc.get_referents, set()
        def record(*things):
            asked.update(map(type, things))
            return get_referents(*things)
        gc.get_referents = record
        found = [str(h) for h in ttmem.who_holds(KEPT[0])]
        gc.get_referents = get_referents
        result = [sorted(k.__name__ for k in asked), found]
        """,
    )
    assert {"list", "dict"} <= set(asked)
    assert not {"module", "type", "ABCMeta"} & set(asked)
    assert found == ["list KEPT in module script"]


def test_other_threads_go_on_with_what_they_are_making(folder: Path) -> None:
    """A tuple that is being made may be in nobody else's hands, or SystemError is raised."""
    failures = run_script(
        folder,
        """
        import sys, threading
        import ttmem, ttnn
        KEPT, failures, over = [ttnn.zeros()], [], threading.Event()
        def work():
            while not over.is_set():
                try: tuple(n for n in range(300))
                except SystemError as failure: failures.append(str(failure))
        sys.setswitchinterval(1e-5)
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(20):
            ttmem.who_holds(KEPT[0])
        over.set()
        thread.join()
        result = failures
        """,
    )
    assert failures == []


def test_nothing_is_kept_of_a_search(folder: Path) -> None:
    kept = run_script(
        folder,
        """
        import gc, sys
        import ttmem, ttnn
        KEPT = [ttnn.zeros()]
        ttmem.who_holds(KEPT[0])
        gc.collect()
        gc.disable()
        before = sys.getrefcount(KEPT), sys.getrefcount(KEPT[0]), len(gc.get_objects())
        ttmem.who_holds(KEPT[0])
        after = sys.getrefcount(KEPT), sys.getrefcount(KEPT[0]), len(gc.get_objects())
        result = [list(before), list(after)]
        """,
    )
    assert kept[0][:2] == kept[1][:2]
    assert abs(kept[0][2] - kept[1][2]) < 10, "lists of all objects"
