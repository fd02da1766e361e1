# SPDX-License-Identifier: Apache-2.0
"""A Python program whose stacks are captured from a library, by test_stack_python.py.

usage: stack_subject.py PROBE CASE

Runs in every interpreter there is, so it needs nothing but the standard library. Each case
compares what stack_probe.c gives with what Python says of itself, and fails with an assertion.
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import ctypes
import functools
import gc
import importlib
import os
import random
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import types

FRAMES = 8
SIZE = 1 << 16

probe = ctypes.CDLL(sys.argv[1])  # lets go of the GIL
held = ctypes.PyDLL(sys.argv[1])  # keeps it
for library in probe, held:
    library.probe_capture.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
probe.probe_is_waited_for.restype = ctypes.c_bool
probe.probe_trouble.restype = ctypes.c_char_p
probe.probe_line.argtypes = [ctypes.c_int, ctypes.c_char_p] + 3 * [ctypes.c_uint32]

checks = 0


def rows(text, kind):
    lines = (line.split("\t") for line in text.decode("utf-8").splitlines())
    return [line[1:] for line in lines if line[0] == kind]


def short(name):
    return name.rpartition(".")[2]


def compare(buffer, stack):
    """What was captured into 'buffer' with what traceback had to say at the same place."""
    global checks
    checks += 1
    expected = [(f.filename, f.lineno, f.name) for f in reversed(stack)][:FRAMES]
    captured = rows(buffer.value, "python")
    got = [(file, int(line), short(name)) for file, line, name, _ in captured]
    assert got == expected, f"\ngot      {got}\nexpected {expected}"
    assert (b"\npython-cut\n" in buffer.value) == (len(stack) > FRAMES)
    return captured


def check():
    buffer = ctypes.create_string_buffer(SIZE)
    _, stack = probe.probe_capture(buffer, SIZE), traceback.extract_stack()
    return compare(buffer, stack)


def operation():
    buffer = ctypes.create_string_buffer(SIZE)
    probe.probe_capture(buffer, SIZE)
    return rows(buffer.value, "operation"), rows(buffer.value, "python")


def thread_name():
    buffer = ctypes.create_string_buffer(SIZE)
    probe.probe_capture(buffer, SIZE)
    return rows(buffer.value, "thread")[0][0]


def case_calls():
    def plain():
        return check()

    def with_defaults(a, b=(1, 2), *rest, c=None, **more):
        captured = a + check()
        return captured

    def multi_line(value):
        return [
            value,
            check(),
            (
                check(),
                None,
            ),
        ]

    def recurse(depth):
        return check() if depth == 0 else recurse(depth - 1)

    for _ in range(3):  # known from the second time on
        plain()
        with_defaults([], 3, 4, c=5, d=6)
        multi_line(1)
        for depth in (1, 5, 30, 200):
            recurse(depth)
    (lambda: check())()
    (lambda f: f())(lambda: check())
    functools.partial(plain)()
    sorted([1], key=lambda _: check() and 0)
    list(map(lambda _: check(), range(3)))


def case_comprehensions():
    [check() for _ in range(3)]
    {len(check()) for _ in range(3)}
    {i: check() for i in range(3)}
    list(check() for _ in range(3))
    [[check() for _ in range(2)] for _ in range(2)]
    [
        check()
        for _ in range(2)
        if check()
    ]


def case_decorators():
    def outer(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @outer
    @outer
    def decorated(n):
        return check()

    @contextlib.contextmanager
    def manager():
        check()
        yield
        check()

    decorated(1)
    with manager():
        check()
    with manager(), manager():
        pass


def case_classes():
    class Body:
        captured = check()

        def method(self):
            return check()

        @property
        def attribute(self):
            return check()

        @staticmethod
        def static():
            return check()

        @classmethod
        def of_class(cls):
            return check()

        def __getattr__(self, name):
            return check()

        def __lt__(self, other):
            return bool(check())

        def __call__(self):
            return check()

    body = Body()
    body.method(), body.attribute, body.static(), body.of_class(), body.missing, body()
    assert body < body

    class Meta(type):
        def __new__(mcs, *args):
            check()
            return super().__new__(mcs, *args)

    class Made(metaclass=Meta):
        check()


def case_generators():
    def generator():
        yield check()
        yield from inner()

    def inner():
        received = yield check()
        yield (check(), received)

    running = generator()
    next(running), next(running), running.send(1)

    async def leaf():
        await asyncio.sleep(0)
        return check()

    async def numbers():
        for _ in range(2):
            yield check()

    async def main():
        check()
        await leaf()
        await asyncio.gather(leaf(), leaf())
        [check() async for _ in numbers()]

    asyncio.run(main())


def case_lines():
    """Lines far apart, in both directions, and where Python says they are after an exception."""
    source = "def far(check):\n" + 300 * "\n" + "    check()\n" + 5000 * "\n"
    source += "    return check()\n"
    names = {}
    exec(compile(source, "far.py", "exec"), names)
    names["far"](check)

    def raising():
        try:
            check()
            raise ValueError
        except ValueError:
            check()
        finally:
            check()
        for _ in range(2): check(); check()  # noqa: E701, E702
        while True:
            if check(): break  # noqa: E701
        assert (
            check()
        )

    raising()
    text = f"{len(check())} {len(check())}"
    assert text


def case_generated():
    """Code objects that come and go, at addresses that are used again."""
    for i in range(3000):
        lines = i % 7
        source = lines * "\n" + f"def made{i % 3}(check):\n    return check()\n"
        names = {}
        exec(compile(source, f"<made {i % 11}>", "exec"), names)
        captured = names[f"made{i % 3}"](check)
        assert captured[1][0] == f"<made {i % 11}>", captured
        assert int(captured[1][1]) == lines + 2
        names.clear()
    gc.collect()
    for i in range(500):
        eval(compile("check()", f"/no/such/folder/file{i}.py", "eval"))
        exec("check()")


def case_churn():
    """The same in several threads at once, with random names, files, lines and depths."""
    errors = []
    sys.setswitchinterval(1e-5)

    def work(seed):
        chance = random.Random(seed)
        try:
            for _ in range(500):
                name = f"made{chance.randrange(40)}"
                source = chance.randrange(9) * "\n" + (
                    f"def {name}(check, depth):\n"
                    f"    return check() if depth == 0 else {name}(check, depth - 1)\n"
                )
                names = {}
                exec(compile(source, f"<{chance.randrange(100)}>", "exec"), names)
                names[name](check, chance.randrange(12))
                if chance.random() < 0.02:
                    gc.collect()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def case_texts():
    """Names and files of every width that Python keeps characters in."""
    for file in ("é.py", "文.py", "\U0001f600.py", "/" + "x" * 500 + ".py"):
        for name in ("été", "文字", "𝒳" if sys.version_info >= (3, 10) else "x"):
            names = {}
            exec(compile(f"def {name}(check):\n return check()\n", file, "exec"), names)
            function = next(v for v in names.values() if isinstance(v, types.FunctionType))
            function(check)
    names = {}
    exec(compile("def f(p):\n return p()\n", "/" + "é" * 4000 + "/end.py", "exec"), names)
    _, captured = names["f"](operation)
    file = captured[1][0]
    assert file.endswith("é/end.py") and 1000 < len(file.encode()) <= 1024, file
    exec(compile("def f(p):\n return p()\n", "\udc80.py", "exec"), names)
    assert names["f"](operation)[1][1][0] == "?.py"


def case_held():
    """The same with the GIL held."""

    def inner():
        buffer = ctypes.create_string_buffer(SIZE)
        _, stack = held.probe_capture(buffer, SIZE), traceback.extract_stack()
        return compare(buffer, stack)

    for _ in range(3):
        inner()
        (lambda: inner())()


def case_threads():
    errors = []

    def work(number):
        try:
            assert thread_name() == f"worker-{number}"
            for i in range(200):
                (lambda: check())()
                exec(compile("check()", f"<thread {number} {i % 5}>", "exec"))
        except BaseException as error:
            errors.append(error)

    for _ in range(3):
        threads = [
            threading.Thread(target=work, args=[n], name=f"worker-{n}") for n in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors


def case_waiting():
    """As in a server: it begins in a thread while the main thread waits, and all work is there."""
    threads = set()

    def serve():
        start()
        while not operation()[1]:  # the test's time is limited
            time.sleep(0.001)
        for _ in range(3):
            check()
        assert thread_name() == "server", thread_name()
        threads.update(sys._current_frames())
        assert len(threading.enumerate()) == 2, threading.enumerate()

    thread = threading.Thread(target=serve, name="server")
    thread.start()
    thread.join()
    assert threads == {threading.main_thread().ident, thread.ident}, threads
    assert checks == 3


def case_opening():
    """As ttnn opens a device: with the GIL, so that the very first allocation has its line."""

    def serve():
        held.probe_start(FRAMES, 48)
        held.probe_use_gil()
        check()
        assert thread_name() == "server", thread_name()

    thread = threading.Thread(target=serve, name="server")
    thread.start()
    thread.join()
    assert checks == 1


def case_daemons():
    """Which threads Python waits for before it ends."""
    found = {}

    class Derived(threading.Thread):
        def run(self):
            found[self.name] = probe.probe_is_waited_for()

    for daemon in (False, True):
        for kind in (threading.Thread, Derived):
            name = f"{kind.__name__} {daemon}"
            thread = kind(target=lambda: Derived.run(threading.current_thread()), daemon=daemon)
            thread.name = name
            thread.start()
            thread.join()
            assert found[name] == (not daemon), found
    assert not probe.probe_is_waited_for()  # the main thread: it would be the one that waits


def case_names():
    assert thread_name() == "MainThread"
    names = []

    class Named(threading.Thread):
        def __init__(self):
            super().__init__(name="é-subclass")
            self.extra = list(range(40))
            for i in range(20):
                setattr(self, f"attribute{i}", i)

        def run(self):
            names.append(thread_name())

    thread = Named()
    thread.start()
    thread.join()
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        names.append(pool.submit(thread_name).result())
    assert names == ["é-subclass", "pool_0"], names

    import _thread

    done = _thread.allocate_lock()
    done.acquire()

    def bare():
        names.append(thread_name())
        done.release()

    _thread.start_new_thread(bare, ())
    done.acquire()
    assert names[-1].startswith("Thread-"), names


def case_callbacks():
    """Python called by C called by Python."""
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    @callback
    def compare_numbers(a, b):
        check()
        return 0

    numbers = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 3, 4, compare_numbers)

    def on_signal(number, frame):
        check()

    signal.signal(signal.SIGUSR1, on_signal)
    os.kill(os.getpid(), signal.SIGUSR1)

    class Dying:
        def __del__(self):
            check()

    Dying()
    cycle = [Dying()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    sys.settrace(lambda *args: None)
    check()
    sys.settrace(None)
    sys.setprofile(lambda *args: None)
    check()
    sys.setprofile(None)


def case_fork():
    check()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            probe.probe_forget()
            check()
            status = 0 if thread_name() == "MainThread" else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def case_full():
    """No room for notes: no stacks, no harm; and when there is room again they are back."""
    check()
    count = probe.probe_note_count()
    probe.probe_allow(count)
    probe.probe_forget()

    def fresh():
        return operation()

    assert fresh() == ([], [])
    probe.probe_allow(1 << 20)
    probe.probe_forget()
    assert fresh()[1]
    check()


def case_subinterpreter():
    import _testcapi

    program = f"""
import ctypes
probe = ctypes.CDLL({sys.argv[1]!r})
def inner():
    buffer = ctypes.create_string_buffer(1 << 16)
    probe.probe_capture(buffer, 1 << 16)
    return buffer.value
for _ in range(3):
    inner()
"""
    for _ in range(3):
        assert _testcapi.run_in_subinterp(program) == 0
    check()


def case_greenlets():
    """Frames of greenlets, whose C stacks lie in the same place one after the other."""
    import greenlet

    def switch():
        greenlet.getcurrent().parent.switch()

    def deep(depth):
        if depth:
            deep(depth - 1)
            return
        check()
        switch()
        check()

    def generate():
        for _ in range(2):
            check()
            switch()
            yield

    def work(number):
        for turn in range(8):
            deep((3 * number + turn) % 12)
            list(generate())

    def run():
        chance = random.Random(1)
        greenlets = [greenlet.greenlet(work) for _ in range(8)]
        for number, one in enumerate(greenlets):
            one.switch(number)
        while greenlets:
            chance.choice(greenlets).switch()
            check()
            greenlets = [one for one in greenlets if not one.dead]

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(run)
        run()
        other.result()
    assert checks >= 2 * 8 * 8 * 4, checks


INSIDE = """
import ctypes, os, traceback
probe = ctypes.CDLL(PROBE)
probe.probe_capture.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
outside = set()
def check():
    buffer = ctypes.create_string_buffer(1 << 16)
    _, stack = probe.probe_capture(buffer, 1 << 16), traceback.extract_stack()
    lines = [line.split("\\t") for line in buffer.value.decode().splitlines()]
    got = [(l[1], int(l[2]), l[3].rpartition(".")[2]) for l in lines if l[0] == "python"]
    if HAS_OWN_FRAMES:
        expected = [(f.filename, f.lineno, f.name) for f in reversed(stack)][:FRAMES]
        assert got == expected, (got, expected)
    else:
        outside.add(got[0][2])
def deep(depth):
    deep(depth - 1) if depth else check()
def generate():
    yield check()
for i in range(12):
    deep(i % 12)
    list(generate())
    [check() for _ in range(2)]
assert HAS_OWN_FRAMES or outside == {"enter"}, outside
"""


def case_subinterpreters():
    """
    Interpreters that come and go in threads, from 3.13 on with a GIL of their own, while the main
    one goes on. Before 3.12 Python has one state for each thread, that of the main interpreter: the
    line that went into the other one stands for all that is done there.
    """
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    has_own_frames = sys.version_info >= (3, 12)
    values = {"PROBE": sys.argv[1], "FRAMES": FRAMES, "HAS_OWN_FRAMES": has_own_frames}
    program = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + INSIDE
    failures = []

    def enter(interpreter):
        failed = interpreters.run_string(interpreter, program)  # 3.13 returns what others raise
        assert failed is None, failed

    def work():
        try:
            for number in range(2):
                if sys.version_info >= (3, 13):
                    interpreter = interpreters.create(("legacy", "isolated")[number % 2])
                else:
                    interpreter = interpreters.create(isolated=False)  # or there is no ctypes
                enter(interpreter)
                interpreters.destroy(interpreter)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        check()
        time.sleep(0.001)
    assert not failures, failures[0]
    check()


def case_ttnn():
    """A package of the same shape as ttnn, and a folder of the user's with the same name."""
    files = {
        "site/ttnn/__init__.py": "from ttnn.decorators import register, FastOperation\n"
        "import ttnn.core\n",
        "site/ttnn/decorators.py": """
import dataclasses
@dataclasses.dataclass
class FastOperation:
    python_fully_qualified_name: str
    function: object
    is_cpp_operation: bool = False
    _slow: object = dataclasses.field(default=None, init=False, repr=False)
    def __hash__(self):
        return hash(self.python_fully_qualified_name)
    def __call__(self, *function_args, **function_kwargs):
        return self.function(*function_args, **function_kwargs)
@dataclasses.dataclass
class Operation(FastOperation):
    pass
def register(name, kind=FastOperation):
    return lambda function: kind(name, function)
""",
        "site/ttnn/core.py": """
from ttnn.decorators import register, Operation
@register("ttnn.to_device")
def to_device(probe):
    return helper(probe)
def helper(probe):
    return probe()
@register("ttnn.from_torch", Operation)
def from_torch(probe):
    return to_device(probe)
many = [register(f"ttnn.experimental.op_{i}")(lambda probe: probe()) for i in range(300)]
""",
        "tests/ttnn/test_model.py": "import ttnn\ndef run(probe):\n"
        "    return ttnn.core.to_device(probe)\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sys.path[:0] = [os.path.join(folder, "site"), os.path.join(folder, "tests", "ttnn")]
        ttnn = importlib.import_module("ttnn")
        users = importlib.import_module("test_model")

        buffer = ctypes.create_string_buffer(SIZE)

        def take():  # called without a Python frame of its own below ttnn's
            return functools.partial(probe.probe_capture, buffer, SIZE)

        for _ in range(3):
            users.run(take())
            assert rows(buffer.value, "operation") == [["ttnn.to_device"]]
            got = rows(buffer.value, "python")
            assert got[0][0].endswith("/tests/ttnn/test_model.py") and got[0][1] == "3", got
            assert got[1][0] == __file__, got

            ttnn.core.from_torch(take())
            assert rows(buffer.value, "operation") == [["ttnn.from_torch"]]
            assert rows(buffer.value, "python")[0][0] == __file__
            for i, call in enumerate(ttnn.core.many):
                call(take())
                expected = [[f"ttnn.experimental.op_{i}"]]
                assert rows(buffer.value, "operation") == expected, rows(buffer.value, "operation")

        # As another one would be that has come to lie where the first one was.
        changed = ttnn.register("ttnn.before")(ttnn.core.helper)
        for i in range(1100):
            changed(take())
            if i == 10:
                assert rows(buffer.value, "operation") == [["ttnn.before"]]
                changed.python_fully_qualified_name = "ttnn.after"
        assert rows(buffer.value, "operation") == [["ttnn.after"]]

        # An attribute that is set later turns its values into a dict in some versions.
        late = ttnn.register("ttnn.late")(ttnn.core.helper)
        for i in range(40):
            setattr(late, f"attribute{i}", i)
        assert late.__dict__
        late(take())
        assert rows(buffer.value, "operation") == [["ttnn.late"]]
        check()
        assert operation()[0] == []


def case_native():
    """Native frames lie in the modules that they are said to lie in."""

    def once():
        buffer = ctypes.create_string_buffer(SIZE)
        probe.probe_capture(buffer, SIZE)
        return rows(buffer.value, "native")

    frames = once()
    paths = [frame[0] for frame in frames]
    assert not any("stack_probe" in path for path in paths[:1]), paths
    assert any("_ctypes" in path for path in paths), paths
    assert len(paths) >= 10 and all(paths), paths
    with open("/proc/self/maps", encoding="utf-8") as file:
        maps = [line.split() for line in file]
    for path, _, address, _ in frames:
        at = int(address, 16) - 1
        found = [m for m in maps if int(m[0].split("-")[0], 16) <= at < int(m[0].split("-")[1], 16)]
        assert found and os.path.basename(found[0][-1]) == os.path.basename(
            os.path.realpath(path)
        ), (path, found)


def case_all_lines():
    """Our reading of every line table in the standard library, with Python's own."""
    compared = 0
    has_location_table = sys.version_info >= (3, 11)

    def codes_of(code):
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from codes_of(constant)

    folder = sysconfig.get_paths()["stdlib"]
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            source = file.read()
        for code in codes_of(compile(source, name, "exec", dont_inherit=True)):
            table = code.co_linetable
            for start, end, line in code.co_lines():
                for offset in {start, end - 2}:
                    got = probe.probe_line(
                        has_location_table, table, len(table), code.co_firstlineno, offset
                    )
                    assert got == (line or 0), (name, code, offset, got, line)
                    compared += 1
    assert compared > 100000, compared


def case_shutdown():
    """Captures from atexit, from destructors of modules that go, and from daemon threads."""

    class Late:
        def __del__(self, take=operation):
            take()

    sys.modules["late_module"] = types.ModuleType("late_module")
    sys.modules["late_module"].value = Late()
    globals()["late"] = Late()
    atexit.register(check)

    def forever():
        while True:
            (lambda: probe.probe_numbers())()

    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    check()


def case_exit():
    """Daemon threads in the middle of captures while their states are freed and used again."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

    class Late:
        def __del__(self, malloc=libc.malloc, memset=libc.memset, sleep=time.sleep):
            for size in range(64, 2048, 16):
                for _ in range(30):
                    memset(malloc(size), 0x41, size)
            sleep(0.1)  # those that were interrupted go on

    # Not among the globals, which the frames of the threads keep alive.
    sys.modules["late_module"] = types.ModuleType("late_module")
    sys.modules["late_module"].value = Late()

    arrived = []

    def deep(depth):
        if depth == 0:
            arrived.append(depth)
            probe.probe_spin()
        deep(depth - 1)

    # One that is late would wait for the GIL of an interpreter that goes: see test_stack_python.py.
    for _ in range(24):
        threading.Thread(target=deep, args=[6], daemon=True).start()
    while len(arrived) < 24:
        time.sleep(0.001)
    time.sleep(0.02)


def case_cleared():
    """A program that empties the list of atexit, and one that runs it and goes on."""
    names = []

    def work():
        names.append(probe.probe_numbers())

    for change in (atexit._clear, atexit._run_exitfuncs):
        change()
        check()  # the main thread asks again
        for _ in range(100):
            pass
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert all(names) and len(names) == 2, names
    case_exit()


def case_overtaken():
    """The interpreter ends while somebody waits for the GIL, to be told of that end."""
    threading.Thread(target=held.probe_start, args=[FRAMES, 48]).start()


def start():
    probe.probe_start(FRAMES, 48)


def main():
    if sys.argv[2] not in ("waiting", "opening", "overtaken"):  # which do so elsewhere
        start()
    globals()["case_" + sys.argv[2]]()
    assert probe.probe_trouble() == b"", probe.probe_trouble()
    print(f"{checks} stacks compared")


main()
