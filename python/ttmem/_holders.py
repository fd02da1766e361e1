# SPDX-License-Identifier: Apache-2.0
"""Which Python objects keep a buffer alive.

Tensors are not known to Python's collector, but what holds them is. From a tensor we go backwards,
holder by holder, until something is reached that lives by itself: a module, a class, a frame that
runs, an exception that Python remembers. What nothing of that kind holds, holds itself: a cycle.

Neither are frames that run, nor dictionaries and tuples with nothing in them that could be part of
a cycle, as a dictionary of tensors has: frames are asked for their variables, those containers
looked for inside of others. Nothing of ours is named: only what was there before the search counts.
Nothing is kept: the copy that Python makes of a frame's variables is emptied again. And nothing
changes by the search, which asks for more care than one would think: see "all objects" below.

All objects are gone through once, by C where that is at hand (see _Graph). Without it, once to find
the tensors and once for each step of the way back, for however many tensors at a time.

The text of this file is a part of libttmem-hook too, which runs it inside programs that were
started by `tt-mem run --holders` (see find() below). So it needs nothing of the package.
"""

from __future__ import annotations

import collections
import gc
import itertools
import operator
import os
import sys
import threading
import time
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, Callable, Iterator, Optional, Sequence

LEVELS = 1000  # from a tensor to its root
WIDTH = 64  # objects looked at on one level, from where a root is known on
WIDTH_MAX = 4096  # the same as long as none is
HOLDERS = 8
ENDS = 4 * HOLDERS  # of ways back from one tensor: several may be told by the same words
REFERRERS = 1024  # of one object; what more have is in everybody's hands and tells nothing
LIMIT = "TTMEM_HOLDERS_CPU_SECONDS"  # in the environment, in place of the two below
FIND_S = 5.0  # CPU time, at most, in a program that ends
WHO_S = 30.0  # the same of one that asks
FIND_OBJECTS = 4_000_000  # that are gone through, at most
LOOK_EVERY = 4096  # objects between looks at the clock
KEY_LENGTH = 60  # of a key in a text
KEY_PARTS = 4
STEPS = 12  # of a path in a text; what is longer is the same again and again
HELD_BY = ", held by "  # in a text

# In the order in which they are told, where all else is equal; src/wire/keepers.h numbers them so.
CAUSES = ("", "container", "cycle", "traceback", "closure", "frame")
REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE")

_CO_OPTIMIZED = 0x1  # a function's, with variables that are in no dictionary


# Plain classes: named tuples and dataclasses are made by exec(), which makes Python forget, in a
# program that ends, that it was interrupted.
class Holder:
    """One way in which a buffer is kept alive."""

    __slots__ = ("kind", "text", "path", "root")

    def __init__(self, kind: str, text: str, path: str = "", root: int = 0):
        self.kind = kind  # "container" | "closure" | "frame" | "traceback" | "cycle"
        self.text = text  # "list KEPT in module decode"
        self.path = path  # "KEPT[3].cache['k']", where that says more
        self.root = root  # id() of the object that the text is about, as it was in the search

    def words(self) -> str:
        return f"{self.text}: {self.path}" if self.path else self.text

    def __str__(self) -> str:
        from ttmem._text import plain  # not at the top: the hook has this file without the package

        return plain(self.words())

    def __repr__(self) -> str:
        return f"Holder({self.kind!r}, {self.text!r}, {self.path!r})"


# An object on the way back and what it holds, innermost None.
Way = tuple[Any, Optional["Way"]]


class _Root:
    """What lives by itself: 'text' is how it is called, 'name' its first step to the tensor."""

    __slots__ = ("kind", "text", "name")

    def __init__(self, kind: str, text: str, name: str):
        self.kind = kind
        self.text = text
        self.name = name


# ---- tensors ----


_SEMAPHORE = "global_semaphore"  # the other type of ttnn's that Python has and that keeps a buffer


def _is_tensor_type(kind: type) -> bool:
    return kind.__name__ in ("Tensor", _SEMAPHORE) and str(kind.__module__).startswith("ttnn")


def _has_buffer(tensor: Any) -> bool:
    """Of a tensor on the host, or given back, ttnn logs the question for its address as fatal."""
    try:
        return tensor.buffer_unique_id() is not None
    except AttributeError:  # an older ttnn
        return True


def _address_of(tensor: Any) -> int | None:
    try:
        if type(tensor).__name__ == _SEMAPHORE:
            return int(sys.modules["ttnn"].get_global_semaphore_address(tensor))
        return int(tensor.buffer_address()) if _has_buffer(tensor) else None
    except Exception:  # on the host, or given back
        return None


def _memory(region: str) -> str:
    """What its addresses are those of: L1_SMALL is a part of L1."""
    return "L1" if region == "L1_SMALL" else region


def _memory_of(tensor: Any) -> str | None:
    if type(tensor).__name__ == _SEMAPHORE:
        return "L1"
    try:
        return _memory(str(tensor.memory_config().buffer_type.name))
    except Exception:  # as above
        return None


def _id_of(tensor: Any) -> int | None:
    try:
        return int(tensor.buffer_unique_id())
    except Exception:  # as above, or an older ttnn
        return None


# ---- frames ----


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == "ttmem" or name.startswith("ttmem.")


def _running_frames() -> tuple[list[tuple[FrameType, int]], set[int]]:
    """Every frame that runs and is not ours, with the number of its thread; and the ids of all."""
    found, numbers = [], set()
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None:
            numbers.add(id(frame))
            if not _is_ours(frame):
                found.append((frame, thread))
            frame = frame.f_back
    # Our own frame is among those: kept in a variable of itself it would be a cycle.
    top = frame = None  # type: ignore[assignment]
    return found, numbers


def _variables(frame: FrameType) -> list[tuple[str, Any]]:
    values = frame.f_locals
    found = list(values.items())
    # Before 3.13 a function's are a copy that stays with its frame and would be one more holder.
    # Only the frame and we have it, unless the program has asked for locals() and kept them.
    is_copy = frame.f_code.co_flags & _CO_OPTIMIZED and isinstance(values, dict)
    if is_copy and sys.getrefcount(values) <= 3:
        values.clear()
    return found


def _name_in_frame(frame: FrameType, thing: Any) -> str:
    return next((name for name, value in _variables(frame) if value is thing), "")


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"


def _thread_name(number: int) -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return names.get(number, str(number))


# ---- all objects ----
#
# Two things that look harmless are not.
#
# To ask an object what it refers to (gc.get_referents) runs C code of its type that was made for
# Python's collector. The collector only looks at what it is shown; we take it in our hands and let
# it go again. That is nothing to an object that lives, and frees a dead one for a second time. The
# module _asyncio of Python 3.12 does show dead ones, its free list, which becomes a circle by that:
# the next who goes through it never ends. Whatever a type written in C may show, so,
#
# - modules are not asked, nor are classes, which would tell of their modules: both have state of
#   all kinds in C. What a program can keep there are their names, and those are in a dictionary.
# - Of types that are written in C by others than Python itself nobody knows. Their objects are not
#   asked, nor are those of classes that are based on them: again, their attributes are what counts.
# - Python's own show what they own. (Observed with all of its modules loaded, 3.10 to 3.13: nothing
#   but the above had a referent that was dead.)
#
# To have an object in our hands is not harmless either. C code that fills a tuple or a frozenset
# has it for itself; when it is in our hands, too, while another thread goes on with it, SystemError
# is raised there. So neither is taken from the collector. They are found inside of what refers to
# them, and are finished then. Python switches threads between any two lines of ours, so everything
# is listed and sorted out within one call into C.


class _Unfinished(Exception):
    """The limit of CPU time is reached, or there are more objects than we go through."""


def _until(seconds: float) -> float:
    """On the clock of this thread's CPU time: a program that waits for its turn is not cut."""
    try:
        seconds = float(os.environ[LIMIT])
    except (KeyError, ValueError):
        pass
    return time.thread_time() + seconds


# Kinds are compared by id, here and below: a class may have its own idea of what it is equal to.
_LEFT = frozenset(map(id, (tuple, frozenset)))


def _containers() -> list[Any]:
    """All that the collector knows, but for tuples and frozensets."""
    if sum(map(len, map(gc.get_objects, (None,)))) > FIND_OBJECTS:
        raise _Unfinished
    everything: list[Any] = []
    is_left = map(_LEFT.__contains__, map(id, map(type, everything)))
    steps = itertools.chain(
        map(everything.extend, map(gc.get_objects, (None,))),  # None, and so is the last
        itertools.compress(everything, map(operator.not_, is_left)),
        map(list.clear, (everything,)),
    )
    found = list(steps)  # here it is done, all of it
    containers = [thing for thing in found if thing is not None and thing is not found]
    found.clear()  # it has found itself
    return containers


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made while the program runs
_WRITTEN_IN_C = frozenset(
    map(
        id,
        (
            BuiltinFunctionType,  # __new__, of most
            ClassMethodDescriptorType,
            MethodDescriptorType,
            WrapperDescriptorType,
        ),
    )
)


def _is_pythons(kind: type) -> bool:
    """It is made by a class statement, or written in C but a part of Python."""
    if str(kind.__module__).partition(".")[0] in sys.stdlib_module_names:
        return True
    is_in_c = any(id(type(member)) in _WRITTEN_IN_C for member in vars(kind).values())
    return bool(kind.__flags__ & _HEAP_TYPE) and not is_in_c


def _held_by_attributes(thing: Any) -> list[Any]:
    own = _own_dict(thing)  # made just now, perhaps, and then the collector has not told of it
    return [own, *_attributes_of(thing).values()]


def _held_by_module(thing: ModuleType) -> list[Any]:
    return [_own_dict(thing)]


def _held_by_class(thing: type) -> list[Any]:
    return gc.get_referents(_own_dict(thing))  # which is but a view of its dictionary


def _held_by_frame(thing: Any) -> list[Any]:
    return gc.get_referents(thing)  # but see _Heap: those that run are left out


def _held_by_generator(thing: Any) -> list[Any]:
    """While it runs its frame is asked for its variables, as others are."""
    is_running = thing.gi_running if isinstance(thing, GeneratorType) else thing.cr_running
    return [] if is_running else gc.get_referents(thing)


def _way_to_ask(kind: type) -> Callable[[Any], list[Any]] | None:
    if issubclass(kind, type):
        return _held_by_class
    if issubclass(kind, ModuleType):
        return _held_by_module
    if kind is FrameType:
        return _held_by_frame
    if kind is GeneratorType or kind is CoroutineType:
        return _held_by_generator
    if all(map(_is_pythons, kind.__mro__)):
        return gc.get_referents
    return _held_by_attributes if kind.__dictoffset__ else None


# What it means that something refers to an object of a kind.
_UNKNOWN, _PLAIN, _TENSOR, _DICT, _INSIDE = range(5)  # the last: see above


def _role_of(kind: type) -> int:
    if _is_tensor_type(kind):
        return _TENSOR
    if kind is dict:
        return _DICT
    return _INSIDE if id(kind) in _LEFT else _PLAIN


class _Heap:
    """What there is: every tensor, and what holds it directly."""

    def __init__(self, containers: list[Any], until: float):
        """Of what was there before it. Raises _Unfinished when it takes longer."""
        self._until = until
        self._kinds: list[type] = []  # those below: kept, so that no other gets the id of one
        self._roles: dict[int, int] = {}
        self._ways_to_ask: dict[int, Callable[[Any], list[Any]] | None] = {}
        self._plain: list[Any] = []  # those to ask by gc.get_referents()
        self._special: list[tuple[Any, Callable[[Any], list[Any]]]] = []
        self._inside: set[int] = set()
        self.tensors: dict[int, Any] = {}
        self._holders: dict[int, list[Any]] = {}
        frames, self._running = _running_frames()
        for container in containers:
            self._add(container)
        self.variables = [
            (frame, thread, {id(value): name for name, value in self._look_at_variables(frame)})
            for frame, thread in frames
            if frame.f_code.co_flags & _CO_OPTIMIZED  # of others they are found as a dictionary
        ]
        for container, held in self._all():
            for thing in held:
                if self._roles.get(id(type(thing)), _UNKNOWN) != _PLAIN:
                    self._look_at(thing, container)

    def _learn_kind(self, kind: type) -> None:
        self._kinds.append(kind)
        try:
            self._roles[id(kind)], self._ways_to_ask[id(kind)] = _role_of(kind), _way_to_ask(kind)
        except Exception:  # its metaclass knows better
            self._roles[id(kind)], self._ways_to_ask[id(kind)] = _PLAIN, None

    def _add(self, container: Any) -> None:
        kind = type(container)
        if id(kind) not in self._roles:
            self._learn_kind(kind)
        ask = self._ways_to_ask[id(kind)]
        if ask is gc.get_referents:
            self._plain.append(container)
        elif ask is not None and id(container) not in self._running:
            self._special.append((container, ask))

    def _all(self) -> Iterator[tuple[Any, list[Any]]]:
        """Each and what it refers to; also those that are added while we go."""
        pairs = itertools.chain(
            ((container, ask(container)) for container, ask in self._special),
            zip(self._plain, map(gc.get_referents, self._plain), strict=True),
        )
        for number, pair in enumerate(pairs):
            if number % LOOK_EVERY == 0 and (
                time.thread_time() > self._until or len(self._plain) > FIND_OBJECTS
            ):
                raise _Unfinished
            yield pair

    def _look_at_variables(self, frame: FrameType) -> list[tuple[str, Any]]:
        found = _variables(frame)
        for _, value in found:
            self._look_at(value, None)
        return found

    def _look_at(self, thing: Any, holder: Any) -> None:
        kind = type(thing)
        if id(kind) not in self._roles:
            self._learn_kind(kind)
        role = self._roles[id(kind)]
        if role == _TENSOR:
            self.tensors[id(thing)] = thing
            known = self._holders.setdefault(id(thing), [])
            if holder is not None and len(known) < REFERRERS:
                known.append(holder)
        elif id(thing) not in self._inside and (
            role == _INSIDE or (role == _DICT and not gc.is_tracked(thing))
        ):
            self._inside.add(id(thing))
            self._add(thing)

    def learn_holders(self, things: list[Any]) -> None:
        """What holds each of them, of all in one pass."""
        wanted = {id(thing) for thing in things if id(thing) not in self._holders}
        if not wanted:
            return
        found: dict[int, list[Any]] = {number: [] for number in wanted}
        for container, held in self._all():
            if wanted.isdisjoint(map(id, held)):
                continue
            for number in wanted.intersection(map(id, held)):
                if len(found[number]) < REFERRERS:
                    found[number].append(container)
        self._holders.update(found)

    def holders_of(self, thing: Any) -> list[Any]:
        """Directly, as learned before."""
        return self._holders.get(id(thing), [])

    def forget(self) -> None:
        """Lets go of all objects."""
        for kept in (self._kinds, self._plain, self._special, self.tensors, self._holders):
            kept.clear()


# ---- all objects, by C ----
#
# The functions of src/hook/python_heap.h do in one pass what _Heap does with one for each step of
# the way back. They only look at what they are shown and never take it in their hands, and keep
# to the same kinds of objects. libttmem-hook puts them here, the package has them in _fast.

NATIVE: dict[str, Callable[..., Any]] | None = globals().get("NATIVE")
_NATIVE_NAMES = ("heap_objects", "heap_special", "heap_graph", "heap_tensors", "heap_holders")
_IS_PLAIN, _IS_SPECIAL, _IS_TENSOR, _IS_INSIDE = 1, 2, 4, 8  # enum ttm_heap_kind
_FLAG_OF_ROLE = {_TENSOR: _IS_TENSOR, _DICT: _IS_INSIDE, _INSIDE: _IS_INSIDE}


def _native() -> dict[str, Callable[..., Any]]:
    """Empty where there are none."""
    global NATIVE
    if NATIVE is None:
        from ttmem import _library

        fast = _library.load_fast()
        NATIVE = {n: getattr(fast, n) for n in _NATIVE_NAMES if hasattr(fast, n)}
    return NATIVE


class _Graph:
    """As _Heap. Raises _Unfinished when it takes longer."""

    def __init__(
        self,
        native: dict[str, Callable[..., Any]],
        objects: list[Any],
        kinds: list[type],
        until: float,
    ):
        self._native = native
        self._until = until
        self._ways_to_ask: dict[int, Callable[[Any], list[Any]]] = {}
        self._holders: dict[int, list[Any]] = {}
        flags = [(kind, self._flags_of(kind)) for kind in kinds]
        frames, running = _running_frames()
        pairs: list[tuple[Any, list[Any]]] = []
        self.variables: list[tuple[FrameType, int, dict[int, str]]] = []
        for frame, thread in frames:
            if frame.f_code.co_flags & _CO_OPTIMIZED:
                found = _variables(frame)
                pairs.append((None, [value for _, value in found]))
                names = {id(value): name for name, value in found}
                self.variables.append((frame, thread, names))
        special = self._call("heap_special", objects, flags)
        flags += [(thing, _IS_TENSOR) for thing in special if _is_class_of_tensors(thing)]
        for number, thing in enumerate(special):
            if number % LOOK_EVERY == 0:
                self.look_at_clock()
            if id(thing) not in running:
                pairs.append((thing, self._ways_to_ask[id(type(thing))](thing)))
        special.clear()
        self.look_at_clock()
        rest_ns = int(1e9 * max(self._until - time.thread_time(), 0.0))
        self._graph = self._call("heap_graph", objects, flags, pairs, rest_ns)
        self.tensors = {id(t): t for t in self._call("heap_tensors", self._graph)}

    def _call(self, name: str, *args: Any) -> Any:
        found = self._native[name](*args)
        if found is None:
            raise _Unfinished
        return found

    def _flags_of(self, kind: type) -> int:
        try:
            role, ask = _role_of(kind), _way_to_ask(kind)
        except Exception:  # its metaclass knows better
            return 0
        flags = _FLAG_OF_ROLE.get(role, 0)
        if ask is gc.get_referents:
            return flags | _IS_PLAIN
        if ask is None:
            return flags
        self._ways_to_ask[id(kind)] = ask
        return flags | _IS_SPECIAL

    def look_at_clock(self) -> None:
        if time.thread_time() > self._until:
            raise _Unfinished

    def learn_holders(self, things: list[Any]) -> None:
        self.look_at_clock()
        for thing in things:
            if id(thing) not in self._holders:
                found = self._call("heap_holders", self._graph, thing, REFERRERS)
                self._holders[id(thing)] = found

    def holders_of(self, thing: Any) -> list[Any]:
        return self._holders.get(id(thing), [])

    def forget(self) -> None:
        self.tensors.clear()
        self._holders.clear()
        self._graph = None


def _is_class_of_tensors(thing: Any) -> bool:
    try:
        return issubclass(type(thing), type) and _is_tensor_type(thing)
    except Exception:  # as above
        return False


def _all_objects(seconds: float) -> _Heap | _Graph:
    until = _until(seconds)
    native = _native()
    found: Any = native["heap_objects"](gc.get_objects, [tuple, frozenset]) if native else False
    if found is None:
        raise _Unfinished
    return _Graph(native, found[0], found[1], until) if found else _Heap(_containers(), until)


# ---- the way back ----


def _module_name(module: ModuleType, name: str) -> str:
    """A program is called by its file: `decode`, not `__main__`; a notebook has none."""
    own = str(module.__dict__.get("__name__", name))
    if own != "__main__" or "get_ipython" in module.__dict__:
        return own
    spec = module.__dict__.get("__spec__")
    if spec is not None:  # python -m
        return str(getattr(spec, "name", own))
    # Python forgets the file of a script when that has run to its end.
    file = module.__dict__.get("__file__") or (sys.argv[:1] or [""])[0]
    stem, ending = os.path.splitext(os.path.basename(str(file)))
    return stem if ending == ".py" else own


class _Trail:
    """The ways back from one tensor, as far as they were gone."""

    def __init__(self, tensor: Any):
        self.ends: list[tuple[_Root, Way]] = []
        self.passed: list[Way] = []
        self.frontier: list[Way] = [(tensor, None)]
        self.seen = {id(tensor)}
        self.is_cut = False  # some ways back were left out
        self.is_done = False
        self.holders: list[Holder] = []

    def is_open(self) -> bool:
        return bool(self.frontier) and len(self.ends) < ENDS

    def finish(self, cycle: Holder | None) -> None:
        """All ways were gone that will be. Only a whole trail shows that nothing else holds it."""
        is_whole = not self.frontier and not self.is_cut
        self.holders = [cycle] if cycle and is_whole else self._described()
        self.is_done = bool(self.holders) or is_whole

    def stop(self) -> None:
        """There was no time for more. What was found so far is true all the same."""
        self.holders = self._described()

    def _described(self) -> list[Holder]:
        """When all is found: to ask an object for its attributes may make a dictionary for it."""
        found: dict[str, Holder] = {}
        for root, way in self.ends:
            holder = _describe(root, way)
            # A coroutine that waits is in many hands of its loop, of which the nearest is enough.
            what = holder.text.partition(HELD_BY)[0] if holder.kind == "frame" else holder.text
            found.setdefault(what, holder)
        return list(found.values())[:HOLDERS]


class _Search:
    def __init__(self, heap: _Heap | _Graph):
        self._heap = heap
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if isinstance(module, ModuleType):
                self._modules.setdefault(id(module.__dict__), _module_name(module, name))
        remembered = [getattr(sys, n, None) for n in ("last_exc", "last_value", "last_traceback")]
        self._remembered = {id(t): "last exception" for t in remembered if t is not None}
        handled = sys.exc_info()[1]
        if handled is not None:
            self._remembered[id(handled)] = "the exception that is being handled"

    def trails_of(self, tensors: list[Any]) -> list[_Trail]:
        """Of each, with its holders."""
        trails = [_Trail(tensor) for tensor in tensors]
        try:
            self._go_back_from_all(trails)
            cycles = [None if t.ends else self._find_cycle(t.passed) for t in trails]
        except _Unfinished:
            self._heap.forget()
            for trail in trails:
                trail.stop()
            return trails
        # Before anything is described: the copy of a frame's variables must be in no other hands.
        self._heap.forget()
        for trail, cycle in zip(trails, cycles, strict=True):
            trail.finish(cycle)
        return trails

    def _go_back_from_all(self, trails: list[_Trail]) -> None:
        for _ in range(LEVELS):
            active = [trail for trail in trails if trail.is_open()]
            if not active:
                break
            self._heap.learn_holders([way[0] for trail in active for way in trail.frontier])
            for trail in active:
                self._go_back(trail)

    def _go_back(self, trail: _Trail) -> None:
        """One step, from all that was reached."""
        rest: list[Way] = []
        for way in trail.frontier:
            trail.ends += ((root, way) for root in self._frames_with(way[0]))
            holders = self._heap.holders_of(way[0])
            trail.is_cut = trail.is_cut or len(holders) >= REFERRERS
            for holder in holders:
                further: Way = (holder, way)
                end = self._root(further)
                if end is not None:  # a module may be reached by several of its names
                    if end.text:
                        trail.ends.append((end, _inner(further)))
                elif id(holder) not in trail.seen:
                    trail.seen.add(id(holder))
                    rest.append(further)
        width = WIDTH if trail.ends else WIDTH_MAX
        trail.is_cut = trail.is_cut or len(rest) > width
        trail.frontier = rest[:width]
        trail.passed += trail.frontier

    def _frames_with(self, thing: Any) -> Iterator[_Root]:
        """Frames that run and have it in a variable."""
        own = threading.get_ident()
        for frame, thread, names in self._heap.variables:
            name = names.get(id(thing))
            if name is None:
                continue
            where = _place(frame)
            if thread != own:
                where += f" in thread {_thread_name(thread)}"
            yield _Root("frame", f"variable {name} of {where}", name)

    def _root(self, way: Way) -> _Root | None:
        """With an empty text when it leads to nothing worth telling."""
        thing, inner = way
        module = self._modules.get(id(thing))
        if module is not None and inner is not None:
            if module.startswith("ttmem"):
                return _Root("", "", "")
            return _named_root(_key_of(thing, inner[0]), inner[0], module)
        if isinstance(thing, type) and inner is not None and inner[1] is not None:
            held = inner[1][0]  # between them is the dictionary of the class
            name = f"{thing.__qualname__}.{_key_of(inner[0], held)}"
            return _named_root(name, held, self._module_of(thing))
        remembered = self._remembered.get(id(thing))
        return _Root("traceback", remembered, "") if remembered else None

    def _module_of(self, kind: type) -> str:
        module = sys.modules.get(str(kind.__module__))
        names = module.__dict__ if isinstance(module, ModuleType) else None
        return self._modules.get(id(names), str(kind.__module__))

    def _find_cycle(self, passed: list[Way]) -> Holder | None:
        """Nothing that lives by itself holds it, so some holder is held by what it holds."""
        for way in passed:
            inside = set()
            step: Way | None = way
            while step is not None:
                inside.add(id(step[0]))
                step = step[1]
            for referrer in self._heap.holders_of(way[0]):
                if id(referrer) not in inside:
                    continue
                owner, held = self._owner(referrer), self._owner(way[0])
                if owner is held and isinstance(way[0], dict):
                    continue  # an object and its attributes are no cycle yet
                text = f"cycle through {type(owner).__name__}{_step(owner, held)}"
                return Holder("cycle", text, root=_least_id(way, referrer))
        return None

    def _owner(self, thing: Any) -> Any:
        """The object whose attributes a dictionary has, or the thing itself."""
        if not isinstance(thing, dict):
            return thing
        self._heap.learn_holders([thing])
        owners = (o for o in self._heap.holders_of(thing) if _own_dict(o) is thing)
        return next(owners, thing)


def _least_id(way: Way, last: Any) -> int:
    """Of the objects of a cycle: the same, wherever the way enters the cycle."""
    least = id(way[0])
    step: Way | None = way
    while step is not None:
        least = min(least, id(step[0]))
        if step[0] is last:
            break
        step = step[1]
    return least


def _named_root(name: str, held: Any, module: str) -> _Root:
    return _Root("container", f"{type(held).__name__} {name} in module {module}", name)


def _inner(way: Way) -> Way:
    """What follows on a root's name: all of the way for an exception."""
    thing, inner = way
    if inner is not None and isinstance(thing, type):
        return inner[1] or inner
    return inner if inner is not None and isinstance(thing, dict) else way


# ---- words ----


def _own_dict(thing: Any) -> Any:
    """Its attributes, without asking its class for an opinion; None where there are none."""
    try:
        return object.__getattribute__(thing, "__dict__")
    except Exception:
        return None


def _slots_of(thing: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(thing).__mro__:
        for name, member in list(kind.__dict__.items()):
            if type(member) is MemberDescriptorType:
                try:
                    yield name, member.__get__(thing)
                except Exception:  # not set, or not to be read
                    continue


def _attributes_of(thing: Any) -> dict[str, Any]:
    own = _own_dict(thing)
    return {**dict(_slots_of(thing)), **(own if isinstance(own, dict) else {})}


def _key_of(names: dict[Any, Any], held: Any) -> str:
    return next((str(k) for k, v in list(names.items()) if v is held and type(k) is str), "…")


def _index(key: Any) -> str:
    """The same in every run, and without asking the program: no address is in it, nor code run."""
    if isinstance(key, type):
        return f"[{key.__name__}]"
    if type(key) is tuple:
        return "[" + ", ".join(_index(part)[1:-1] for part in key[:KEY_PARTS]) + "]"
    if type(key) in (str, bytes):
        return f"[{key[:KEY_LENGTH]!r}]"
    is_plain = type(key) in (int, float, bool, type(None))
    return f"[{key!r}]" if is_plain else f"[{type(key).__name__} …]"


def _step(holder: Any, held: Any) -> str:
    """ ".layers", "[3]", "['k']": from a holder to what it holds; "" where it is but a wrapping."""
    if isinstance(holder, dict):
        return next((_index(k) for k, v in list(holder.items()) if v is held), "[…]")
    if isinstance(holder, (list, tuple, collections.deque)):
        return next((f"[{n}]" for n, v in enumerate(holder) if v is held), "[…]")
    if isinstance(holder, (set, frozenset)):
        return "[…]"
    if isinstance(holder, (CellType, FunctionType, TracebackType, FrameType)):
        return ""
    if _own_dict(holder) is held:
        return ""
    own = _attributes_of(holder)
    return next((f".{name}" for name, value in own.items() if value is held), ".…")


def _attributes_on(way: Way) -> Way | None:
    """The way from the dictionary that has a thing's attributes, if it leads through that."""
    thing, inner = way
    if inner is None or not isinstance(inner[0], dict):
        return None
    if isinstance(thing, threading.local):  # one for each thread, in another
        return inner[1] if inner[1] and isinstance(inner[1][0], dict) else None
    return inner if _step(thing, inner[0]) == "" else None


def _path(way: Way) -> list[str]:
    """In steps."""
    steps = []
    holder, inner = way
    while inner is not None:
        held: Any = inner[0]
        further = inner[1]
        attributes = _attributes_on((holder, inner))
        if attributes and attributes[1]:
            steps.append(f".{_key_of(attributes[0], attributes[1][0])}")
            holder, inner = attributes[1]
        else:
            steps.append(_step(holder, held))
            holder, inner = held, further
    return [step for step in steps if step]


_SUSPENDED = (
    (GeneratorType, "gi_frame", "generator"),
    (CoroutineType, "cr_frame", "coroutine"),
    (AsyncGeneratorType, "ag_frame", "generator"),
)


def _suspended(way: Way) -> tuple[str, str] | None:
    """A generator or coroutine that waits; before 3.11 its frame stands between it and the rest."""
    thing, inner = way
    for kind, attribute, word in _SUSPENDED:
        frame = getattr(thing, attribute) if isinstance(thing, kind) else None
        if frame is None or inner is None:
            continue
        held = inner[1][0] if isinstance(inner[0], FrameType) and inner[1] else inner[0]
        name = _name_in_frame(frame, held)
        return "frame", f"{word} {_place(frame)}" + (f", variable {name}" if name else "")
    return None


def _closure(way: Way) -> tuple[str, str] | None:
    thing, inner = way
    if not isinstance(thing, FunctionType) or not thing.__closure__:
        return None
    while inner is not None:
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__, strict=True):
            if cell is inner[0]:
                return "closure", f"closure of {thing.__qualname__}, variable {name}"
        inner = inner[1]
    return None


def _default(way: Way) -> tuple[str, str] | None:
    thing, inner = way
    if not isinstance(thing, FunctionType) or inner is None or inner[1] is None:
        return None
    code, held = thing.__code__, inner[1][0]
    defaults, keywords = thing.__defaults__, thing.__kwdefaults__
    name = None
    if defaults is not None and inner[0] is defaults:
        last = code.co_varnames[: code.co_argcount][-len(defaults) :]
        name = next((n for n, value in zip(last, defaults, strict=True) if value is held), None)
    elif keywords is not None and inner[0] is keywords:
        name = _key_of(keywords, held)
    return ("container", f"default of {thing.__qualname__}, argument {name}") if name else None


def _dead_frame(way: Way) -> tuple[str, str] | None:
    thing, inner = way
    if not isinstance(thing, FrameType) or inner is None:
        return None
    name = _name_in_frame(thing, inner[0])
    return "traceback", f"variable {name} of {_place(thing)}" if name else _place(thing)


def _joined(steps: list[str]) -> str:
    return "".join(steps if len(steps) <= STEPS else [*steps[:4], " … ", *steps[-3:]])


def _traceback_holder(
    root: _Root, way: Way, raised: BaseException | None, frame: Way, words: str
) -> Holder:
    """Its root is the exception, so that all variables of all of its frames have the same."""
    if root.kind == "traceback":
        return Holder("traceback", f"traceback of {root.text}: {words}", root=id(way[0]))
    of = "an exception" if raised is None else type(raised).__name__
    thing = frame[0] if raised is None else raised
    text = f"traceback of {of}: {words}{HELD_BY}{root.text}"
    return Holder("traceback", text, root=id(thing))


def _describe(root: _Root, way: Way) -> Holder:
    """A closure, a generator or a traceback on the way says more than what holds it in turn."""
    raised: BaseException | None = None
    step: Way | None = way
    while step is not None:
        if isinstance(step[0], BaseException):
            raised = step[0]
        found = _suspended(step) or _closure(step) or _default(step) or _dead_frame(step)
        if found and found[0] == "traceback":
            return _traceback_holder(root, way, raised, step, found[1])
        if found:
            return Holder(found[0], f"{found[1]}{HELD_BY}{root.text}", root=id(step[0]))
        step = step[1]
    steps = _path(way)
    path = root.name + _joined(steps) if len(steps) > 1 else ""
    return Holder(root.kind, root.text, path, id(way[0]))


# ---- asking ----


class _CollectorOff:
    """
    Python's collector waits while we search: what we make would set it going, and it would take
    away the very cycles that we look for, earlier than the program would have lost them.
    """

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


class Holders(list[Holder]):
    """
    What holds a buffer. Where it is empty and 'search' is "done", no Python object that can be seen
    holds it; "unfinished" is a search that reached a limit, and then there may be others.
    """

    def __init__(self, found: list[_Trail], is_done: bool):
        holders = {holder.text: holder for trail in found for holder in trail.holders}
        super().__init__(list(holders.values())[:HOLDERS])
        is_whole = is_done and all(trail.is_done for trail in found)
        self.search = "done" if is_whole else "unfinished"


# An address and its memory, None for any.
Place = tuple[int, Optional[str]]


def _trails_at(places: list[Place]) -> list[list[_Trail]]:
    """Of the tensors at each of them."""
    heap = _all_objects(WHO_S)
    by_address: dict[int | None, list[Any]] = collections.defaultdict(list)
    for tensor in heap.tensors.values():
        by_address[_address_of(tensor)].append(tensor)
    heap.tensors.clear()
    tensors = [
        [t for t in by_address.get(address, ()) if memory is None or _memory_of(t) == memory]
        for address, memory in places
    ]
    by_address.clear()
    trails = iter(_Search(heap).trails_of([tensor for some in tensors for tensor in some]))
    return [[next(trails) for _ in some] for some in tensors]


def who_holds_each(places: Sequence[tuple[int, str | None]]) -> list[Holders]:
    """As who_holds(), for addresses in regions, all by one search."""
    with _CollectorOff():
        try:
            found = _trails_at([(a, _memory(region) if region else None) for a, region in places])
        except _Unfinished:
            return [Holders([], False) for _ in places]
    return [Holders(trails, True) for trails in found]


def who_holds(target: Any, *, region: str | None = None) -> Holders:
    """
    The Python objects that keep a buffer alive; 'target' is its address or a tensor. Empty when
    none can be seen: then it is held outside Python, or not at all, or the search is unfinished.
    """
    address = target if isinstance(target, int) else _address_of(target)
    if address is None:
        return Holders([], True)
    if not isinstance(target, int):
        region = region or _memory_of(target)
    return who_holds_each([(address, region)])[0]


def _most_telling(found: list[Holder]) -> list[Holder]:
    """Those that several of the samples have come first, then those that are nearest."""
    counts = collections.Counter(holder.text for holder in found)
    once = {holder.text: holder for holder in reversed(found)}
    return sorted(
        once.values(),
        key=lambda h: (-counts[h.text], CAUSES.index(h.kind), len(h.path), h.text),
    )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _line(origin: int, found: list[Holder], is_done: bool, roots: dict[int, int]) -> str:
    """'roots' numbers the objects that holders are about, as they come up."""
    best = _most_telling(found)[:HOLDERS]
    cause = CAUSES.index(best[0].kind) if best else 0
    words = (
        f"\x1f{roots.setdefault(holder.root, len(roots) + 1)} {_printable(holder.words())}"
        for holder in best
    )
    return f"{origin} {cause} {0 if is_done else 1}" + "".join(words)


def _samples(heap: _Heap | _Graph, question: bytes) -> list[tuple[int, list[Any]]]:
    """Each line's origin, and the tensors of its allocation."""
    by_id: dict[int | None, list[Any]] = collections.defaultdict(list)
    by_place: dict[tuple[str | None, int | None], list[Any]] = collections.defaultdict(list)
    for tensor in heap.tensors.values():
        number = _id_of(tensor)
        if number is not None:
            by_id[number].append(tensor)
        else:
            by_place[_memory_of(tensor), _address_of(tensor)].append(tensor)
    found = []
    for line in question.splitlines():
        origin, region, address, number = map(int, line.split())
        place = _memory(REGIONS[region]), address
        tensors = by_id.get(number) or by_place.get(place, [])
        found.append((origin, tensors))
    return found


def find(question: bytes) -> bytes:
    """
    For libttmem-hook (src/hook/keepers.c, which has the format, and switches the collector off):
    allocations in, origins with what holds them out, each with whether the search was done.
    """
    try:
        return _find(question)
    except _Unfinished:
        origins = dict.fromkeys(int(line.split()[0]) for line in question.splitlines())
        return "\n".join(_line(origin, [], False, {}) for origin in origins).encode()


def _find(question: bytes) -> bytes:
    heap = _all_objects(FIND_S)
    samples = _samples(heap, question)
    heap.tensors.clear()
    trails = iter(_Search(heap).trails_of([tensor for _, some in samples for tensor in some]))
    origins: dict[int, list[_Trail]] = {}
    for origin, some in samples:
        origins.setdefault(origin, []).extend(next(trails) for _ in some)
    roots: dict[int, int] = {}
    lines = [
        _line(
            origin,
            [holder for trail in some for holder in trail.holders],
            all(trail.is_done for trail in some),
            roots,
        )
        for origin, some in origins.items()
    ]
    return "\n".join(lines).encode("utf-8", "replace")
