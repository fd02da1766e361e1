# SPDX-License-Identifier: Apache-2.0
"""Which Python objects keep a buffer alive.

Tensors are not known to Python's collector, but what holds them is. From a tensor we go backwards,
holder by holder, until something is reached that lives by itself: a module, a class, a frame that
runs, an exception that Python remembers. What nothing of that kind holds, holds itself: a cycle.

Neither are frames that run, nor dictionaries and tuples with nothing in them that could be part of
a cycle, as a dictionary of tensors has: frames are asked for their variables, those containers
looked for inside of others. Nothing of ours is named: only what was there before the search counts.
Nothing is kept: the copy that Python makes of a frame's variables is emptied again.

All objects are gone through once to find the tensors, and once for each step of the way back, for
however many tensors at a time.

The text of this file is a part of libttmem-hook too, which runs it inside programs that were
started by `tt-mem run --holders` (see find() below). So it needs nothing of the package.
"""

from __future__ import annotations

import collections
import gc
import os.path
import sys
import threading
import time
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
    TracebackType,
)
from typing import Any, Iterator, Optional

LEVELS = 12  # from a tensor to its root
WIDTH = 64  # objects looked at on one level
HOLDERS = 8
NESTED = 8  # containers that the collector does not know, inside of each other
FIND_S = 5.0  # what a program that ends is kept waiting for, at most
FIND_OBJECTS = 4_000_000  # it has many more: their numbers alone would take half a gigabyte
LOOK_EVERY = 4096  # objects between looks at the clock

# In the order in which they are told, where all else is equal; src/wire/keepers.h numbers them so.
CAUSES = ("", "container", "cycle", "traceback", "closure", "frame")
REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE")

_CO_OPTIMIZED = 0x1  # a function's, with variables that are in no dictionary


# Plain classes: named tuples and dataclasses are made by exec(), which makes Python forget, in a
# program that ends, that it was interrupted.
class Holder:
    """One way in which a buffer is kept alive."""

    __slots__ = ("kind", "text", "path")

    def __init__(self, kind: str, text: str, path: str = ""):
        self.kind = kind  # "container" | "closure" | "frame" | "traceback" | "cycle"
        self.text = text  # "list KEPT in module decode"
        self.path = path  # "KEPT[3].cache['k']", where that says more

    def __str__(self) -> str:
        return f"{self.text}: {self.path}" if self.path else self.text

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


def _is_tensor_type(kind: type) -> bool:
    return kind.__name__ == "Tensor" and str(kind.__module__).startswith("ttnn")


def _address_of(tensor: Any) -> int | None:
    try:
        return int(tensor.buffer_address())
    except Exception:  # on the host, or given back
        return None


def _region_of(tensor: Any) -> str | None:
    try:
        return str(tensor.memory_config().buffer_type.name)
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


def _running_frames() -> list[tuple[FrameType, int]]:
    """Every frame that runs, with the number of its thread."""
    found = []
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None:
            if not _is_ours(frame):
                found.append((frame, thread))
            frame = frame.f_back
    # Our own frame is among those: kept in a variable of itself it would be a cycle.
    top = frame = None  # type: ignore[assignment]
    return found


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


class _Unfinished(Exception):
    """Time is up."""


class _Heap:
    """
    What there is: every tensor, and what holds it directly. Containers that the collector does not
    know, and with them what they are in, are noted where there are tensors inside.
    """

    def __init__(self, existing: frozenset[int], until: float):
        """Of what there was before it, by id. Raises _Unfinished when it takes longer."""
        self._existing = existing
        self._until = until
        self.tensors: dict[int, Any] = {}
        self._holders: dict[int, list[Any]] = {}
        self._is_tensor: dict[type, bool] = {}
        frames = _running_frames()
        self._running = {id(frame) for frame, _ in frames}
        self.variables = [
            (frame, thread, {id(value): name for name, value in self._look_at_variables(frame)})
            for frame, thread in frames
            if frame.f_code.co_flags & _CO_OPTIMIZED  # of others they are found as a dictionary
        ]
        for container in self._objects():
            if self._is_old(container):
                for thing in gc.get_referents(container):
                    self._look_at(thing, container, NESTED)

    def _objects(self) -> Iterator[Any]:
        for number, thing in enumerate(gc.get_objects()):
            if number % LOOK_EVERY == 0 and time.monotonic() > self._until:
                raise _Unfinished
            yield thing

    def _is_old(self, thing: Any) -> bool:
        """It is not ours. A frame that runs is asked for its variables instead."""
        return id(thing) in self._existing and id(thing) not in self._running

    def _look_at_variables(self, frame: FrameType) -> list[tuple[str, Any]]:
        found = _variables(frame)
        for _, value in found:
            self._look_at(value, None, NESTED)
        return found

    def _look_at(self, thing: Any, holder: Any, nested: int) -> bool:
        """Whether it is a tensor, or something hidden with tensors inside."""
        kind = type(thing)
        is_tensor = self._is_tensor.get(kind)
        if is_tensor is None:
            is_tensor = self._is_tensor[kind] = _is_tensor_type(kind)
        if is_tensor:
            self.tensors[id(thing)] = thing
        elif not self._has_hidden_tensors(thing, nested):
            return False
        known = self._holders.setdefault(id(thing), [])
        if holder is not None and not any(holder is other for other in known):
            known.append(holder)
        return True

    def _has_hidden_tensors(self, thing: Any, nested: int) -> bool:
        if type(thing) not in (dict, tuple) or nested == 0 or gc.is_tracked(thing):
            return False
        return any([self._look_at(t, thing, nested - 1) for t in gc.get_referents(thing)])

    def learn_holders(self, things: list[Any]) -> None:
        """What holds each of them, of all in one pass."""
        wanted = {id(thing) for thing in things if id(thing) not in self._holders}
        if not wanted:
            return
        found: dict[int, list[Any]] = {number: [] for number in wanted}
        for container in self._objects():
            held = gc.get_referents(container)
            if wanted.isdisjoint(map(id, held)) or not self._is_old(container):
                continue
            for number in wanted.intersection(map(id, held)):
                found[number].append(container)
        self._holders.update(found)

    def holders_of(self, thing: Any) -> list[Any]:
        """Directly, as learned before."""
        return self._holders.get(id(thing), [])


# ---- the way back ----


def _module_name(module: ModuleType, name: str) -> str:
    """A program is called by its file: `decode`, not `__main__`."""
    own = str(module.__dict__.get("__name__", name))
    if own != "__main__":
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
        self.found: dict[str, Holder] = {}
        self.passed: list[Way] = []
        self.frontier: list[Way] = [(tensor, None)]
        self.seen = {id(tensor)}

    def put(self, root: _Root, way: Way) -> None:
        holder = _describe(root, way)
        self.found.setdefault(holder.text, holder)


class _Search:
    def __init__(self, heap: _Heap):
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

    def holders_of(self, tensors: list[Any]) -> list[list[Holder]]:
        """Of each."""
        trails = [_Trail(tensor) for tensor in tensors]
        for _ in range(LEVELS):
            active = [trail for trail in trails if trail.frontier and len(trail.found) < HOLDERS]
            if not active:
                break
            self._heap.learn_holders([way[0] for trail in active for way in trail.frontier])
            for trail in active:
                self._go_back(trail)
        return [self._holders(trail) for trail in trails]

    def _holders(self, trail: _Trail) -> list[Holder]:
        cycle = None if trail.found else self._find_cycle(trail.passed)
        return [cycle] if cycle else list(trail.found.values())

    def _go_back(self, trail: _Trail) -> None:
        """One step, from all that was reached."""
        rest: list[Way] = []
        for way in trail.frontier:
            for root in self._frames_with(way[0]):
                trail.put(root, way)
            for holder in self._heap.holders_of(way[0]):
                if id(holder) in trail.seen:
                    continue
                trail.seen.add(id(holder))
                further: Way = (holder, way)
                end = self._root(further)
                if end is None:
                    rest.append(further)
                elif end.text:
                    trail.put(end, _inner(further))
        trail.frontier = rest[:WIDTH]
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
            name = next((str(k) for k, v in list(thing.items()) if v is inner[0]), "")
            text = f"{type(inner[0]).__name__} {name} in module {module}"
            return _Root("container", text, name)
        if isinstance(thing, type):
            name = _step(thing, inner[0] if inner else None)
            return _Root("container", f"class {thing.__qualname__}", thing.__qualname__ + name)
        remembered = self._remembered.get(id(thing))
        return _Root("traceback", remembered, "") if remembered else None

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
                return Holder("cycle", f"cycle through {type(owner).__name__}{_step(owner, held)}")
        return None

    def _owner(self, thing: Any) -> Any:
        """The object whose attributes a dictionary has, or the thing itself."""
        if not isinstance(thing, dict):
            return thing
        self._heap.learn_holders([thing])
        owners = (o for o in self._heap.holders_of(thing) if _own_dict(o) is thing)
        return next(owners, thing)


def _inner(way: Way) -> Way:
    """The part of the way that a root's name stands for: all of it for an exception."""
    thing, inner = way
    return inner if inner is not None and isinstance(thing, (dict, type)) else way


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
                except AttributeError:  # not set
                    continue


def _attributes_of(thing: Any) -> dict[str, Any]:
    own = _own_dict(thing)
    return {**dict(_slots_of(thing)), **(own if isinstance(own, dict) else {})}


def _step(holder: Any, held: Any) -> str:
    """ ".layers", "[3]", "['k']": from a holder to what it holds; "" where it is but a wrapping."""
    if isinstance(holder, dict):
        return next((f"[{k!r}]" for k, v in list(holder.items()) if v is held), "[…]")
    if isinstance(holder, (list, tuple, collections.deque)):
        return next((f"[{n}]" for n, v in enumerate(holder) if v is held), "[…]")
    if isinstance(holder, (CellType, FunctionType, TracebackType, FrameType)):
        return ""
    if _own_dict(holder) is held:
        return ""
    own = _attributes_of(holder)
    return next((f".{name}" for name, value in own.items() if value is held), ".…")


def _path(way: Way) -> str:
    text = ""
    holder, inner = way
    while inner is not None:
        held: Any = inner[0]
        further = inner[1]
        if isinstance(held, dict) and further and _step(holder, held) == "":
            key = next((k for k, v in list(held.items()) if v is further[0]), "…")
            text += f".{key}"
            holder, inner = further
        else:
            text += _step(holder, held)
            holder, inner = held, further
    return text


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


def _dead_frame(way: Way) -> tuple[str, str] | None:
    thing, inner = way
    if not isinstance(thing, FrameType) or inner is None:
        return None
    name = _name_in_frame(thing, inner[0])
    return "traceback", f"variable {name} of {_place(thing)}" if name else _place(thing)


def _describe(root: _Root, way: Way) -> Holder:
    """A closure, a generator or a traceback on the way says more than what holds it in turn."""
    raised = ""
    step: Way | None = way
    while step is not None:
        if isinstance(step[0], BaseException):
            raised = type(step[0]).__name__
        found = _suspended(step) or _closure(step) or _dead_frame(step)
        if found and found[0] == "traceback":
            is_root = root.kind == "traceback"
            of = root.text if is_root else raised or "an exception"
            held = "" if is_root else f", held by {root.text}"
            return Holder("traceback", f"traceback of {of}: {found[1]}{held}")
        if found:
            return Holder(found[0], f"{found[1]}, held by {root.text}")
        step = step[1]
    path = _path(way)
    is_plain = path.count("[") + path.count(".") <= 1
    return Holder(root.kind, root.text, "" if is_plain else root.name + path)


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


def who_holds(target: Any, *, region: str | None = None) -> list[Holder]:
    """
    The Python objects that keep a buffer alive; 'target' is its address or a tensor. Empty when
    none can be seen: then it is held outside Python, or not at all.
    """
    address = target if isinstance(target, int) else _address_of(target)
    if address is None:
        return []
    if not isinstance(target, int):
        region = region or _region_of(target)
    with _CollectorOff():
        heap = _Heap(frozenset(map(id, gc.get_objects())), float("inf"))
        tensors = [
            tensor
            for tensor in heap.tensors.values()
            if _address_of(tensor) == address and (region is None or _region_of(tensor) == region)
        ]
        heap.tensors.clear()
        found = _Search(heap).holders_of(tensors)
    holders = {holder.text: holder for one in found for holder in one}
    return list(holders.values())[:HOLDERS]


def _most_telling(found: list[Holder]) -> list[Holder]:
    """Those that several of the samples have come first."""
    counts = collections.Counter(holder.text for holder in found)
    once = {holder.text: holder for holder in reversed(found)}
    return sorted(once.values(), key=lambda h: (-counts[h.text], CAUSES.index(h.kind), h.text))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _line(origin: int, found: list[Holder]) -> str:
    best = _most_telling(found)[:HOLDERS]
    cause = CAUSES.index(best[0].kind) if best else 0
    words = (f"\x1f{_printable(str(holder))}" for holder in best)
    return f"{origin} {cause}" + "".join(words)


def _samples(heap: _Heap, question: bytes) -> list[tuple[int, list[Any]]]:
    """Each line's origin, and the tensors of its allocation."""
    by_id: dict[int | None, list[Any]] = collections.defaultdict(list)
    by_place: dict[tuple[str | None, int | None], list[Any]] = collections.defaultdict(list)
    for tensor in heap.tensors.values():
        number = _id_of(tensor)
        if number is not None:
            by_id[number].append(tensor)
        else:
            by_place[_region_of(tensor), _address_of(tensor)].append(tensor)
    found = []
    for line in question.splitlines():
        origin, region, address, number = map(int, line.split())
        tensors = by_id.get(number) or by_place.get((REGIONS[region], address), [])
        found.append((origin, tensors))
    return found


def find(question: bytes) -> bytes:
    """
    For libttmem-hook (src/hook/keepers.c, which has the format, and switches the collector off):
    allocations in, origins with what holds them out. Nothing when there was no time.
    """
    try:
        return _find(question)
    except _Unfinished:
        return b""


def _find(question: bytes) -> bytes:
    until = time.monotonic() + FIND_S
    if len(gc.get_objects()) > FIND_OBJECTS:
        return b""
    heap = _Heap(frozenset(map(id, gc.get_objects())), until)
    samples = _samples(heap, question)
    heap.tensors.clear()
    found = _Search(heap).holders_of([tensor for _, some in samples for tensor in some])
    origins: dict[int, list[Holder]] = {}
    holders = iter(found)
    for origin, some in samples:
        so_far = origins.setdefault(origin, [])
        for _ in some:
            so_far += next(holders)
    lines = [_line(origin, some) for origin, some in origins.items()]
    return "\n".join(lines).encode("utf-8", "replace")
