# SPDX-License-Identifier: Apache-2.0
"""Which Python objects keep a buffer alive.

Tensors are not known to Python's collector, but what holds them is. From a tensor we go backwards,
holder by holder, until something is reached that lives by itself: a module, a class, a frame that
runs, an exception that Python remembers. What nothing of that kind holds, holds itself: a cycle.

Neither are frames that run, nor dictionaries and tuples with nothing in them that could be part of
a cycle, as a dictionary of tensors has: frames are asked for their variables, those containers
looked for inside of others. Nothing of ours is named: only what was there before the search counts.
Nothing is kept: the copy that Python makes of a frame's variables is emptied again.
"""

from __future__ import annotations

import collections
import dataclasses
import gc
import sys
import threading
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
    TracebackType,
)
from typing import Any, Iterator, Optional

LEVELS = 12  # from a tensor to its root
WIDTH = 64  # objects looked at on one level
HOLDERS = 8

_CO_OPTIMIZED = 0x1  # a function's, with variables that are in no dictionary


@dataclasses.dataclass(frozen=True)
class Holder:
    """One way in which a buffer is kept alive."""

    kind: str  # "container" | "closure" | "frame" | "traceback" | "cycle"
    text: str  # "list KEPT in module decode"
    path: str = ""  # "KEPT[3].cache['k']", where that says more

    def __str__(self) -> str:
        return f"{self.text}: {self.path}" if self.path else self.text


# An object on the way back and what it holds, innermost None.
Way = tuple[Any, Optional["Way"]]


@dataclasses.dataclass(frozen=True)
class _Root:
    """What lives by itself: 'text' is how it is called, 'name' its first step to the tensor."""

    kind: str
    text: str
    name: str


# ---- tensors ----


def _is_tensor(thing: Any) -> bool:
    kind = type(thing)
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


# ---- containers that the collector does not know ----


def _is_hidden(thing: Any) -> bool:
    return type(thing) in (dict, tuple) and not gc.is_tracked(thing)


def _hidden_in(container: Any) -> Iterator[Any]:
    for thing in gc.get_referents(container):
        if _is_hidden(thing):
            yield thing
            yield from _hidden_in(thing)


def _all_referents(container: Any) -> Iterator[Any]:
    yield from gc.get_referents(container)
    for hidden in _hidden_in(container):
        yield from gc.get_referents(hidden)


# ---- the way back ----


class _Search:
    def __init__(self, existing: frozenset[int]):
        self._existing = existing
        frames = _running_frames()
        self._running = {id(frame) for frame, _ in frames}
        self._variables = [
            (frame, thread, {id(value): name for name, value in _variables(frame)})
            for frame, thread in frames
            if frame.f_code.co_flags & _CO_OPTIMIZED  # of others they are found as a dictionary
        ]
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if isinstance(module, ModuleType):
                self._modules.setdefault(id(module.__dict__), module.__dict__.get("__name__", name))

    def holders_of(self, tensor: Any) -> list[Holder]:
        found: dict[str, Holder] = {}
        passed: list[Way] = []
        frontier: list[Way] = [(tensor, None)]
        seen = {id(tensor)}
        for _ in range(LEVELS):
            for way in frontier:
                for root in self._frames_with(way[0]):
                    _put(found, root, way)
            rest: list[Way] = []
            for way in self._referrers(frontier, seen):
                end = self._root(way)
                if end is None:
                    rest.append(way)
                elif end.text:
                    _put(found, end, _inner(way))
            frontier = rest[:WIDTH]
            passed += frontier
            if not frontier or len(found) >= HOLDERS:
                break
        if not found:
            cycle = _find_cycle(passed)
            if cycle:
                found[cycle.text] = cycle
        return list(found.values())

    def _referrers(self, frontier: list[Way], seen: set[int]) -> list[Way]:
        by_id = {id(way[0]): way for way in frontier}
        found: list[Way] = []
        for holder in gc.get_referrers(*(way[0] for way in frontier)):
            number = id(holder)
            if number in seen or number in self._running or number not in self._existing:
                continue
            held = next((by_id[id(r)] for r in gc.get_referents(holder) if id(r) in by_id), None)
            if held is not None:
                seen.add(number)
                found.append((holder, held))
        for hidden, held in self._hidden_referrers(by_id):
            if id(hidden) not in seen:
                seen.add(id(hidden))
                found.append((hidden, held))
        return found

    def _hidden_referrers(self, by_id: dict[int, Way]) -> Iterator[Way]:
        """Containers that are not known, with things that are not: a few per program."""
        if not any(_is_hidden(thing) or not gc.is_tracked(thing) for thing, _ in by_id.values()):
            return
        for container in gc.get_objects():
            if id(container) not in self._existing:
                continue
            for hidden in _hidden_in(container):
                for thing in gc.get_referents(hidden):
                    if id(thing) in by_id:
                        yield hidden, by_id[id(thing)]
        for frame, _ in _running_frames():
            for _, value in _variables(frame):
                for hidden in [value, *_hidden_in(value)] if _is_hidden(value) else []:
                    for thing in gc.get_referents(hidden):
                        if id(thing) in by_id:
                            yield hidden, by_id[id(thing)]

    def _frames_with(self, thing: Any) -> Iterator[_Root]:
        """Frames that run and have it in a variable."""
        own = threading.get_ident()
        for frame, thread, names in self._variables:
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
        last = [getattr(sys, n, None) for n in ("last_exc", "last_value", "last_traceback")]
        if any(thing is other for other in last):
            return _Root("traceback", "last exception", "")
        return None


def _inner(way: Way) -> Way:
    """The part of the way that a root's name stands for: all of it for an exception."""
    thing, inner = way
    return inner if inner is not None and isinstance(thing, (dict, type)) else way


def _put(found: dict[str, Holder], root: _Root, way: Way) -> None:
    holder = _describe(root, way)
    found.setdefault(holder.text, holder)


# ---- words ----


def _attributes_of(thing: Any) -> dict[str, Any]:
    names = [
        name
        for kind in type(thing).__mro__
        for name in (lambda s: (s,) if isinstance(s, str) else s)(getattr(kind, "__slots__", ()))
    ]
    values = {name: getattr(thing, name, None) for name in names if name != "__dict__"}
    own = getattr(thing, "__dict__", None)
    return {**values, **own} if isinstance(own, dict) else values


def _step(holder: Any, held: Any) -> str:
    """ ".layers", "[3]", "['k']": from a holder to what it holds; "" where it is but a wrapping."""
    if isinstance(holder, dict):
        return next((f"[{k!r}]" for k, v in list(holder.items()) if v is held), "[…]")
    if isinstance(holder, (list, tuple, collections.deque)):
        return next((f"[{n}]" for n, v in enumerate(holder) if v is held), "[…]")
    if isinstance(holder, (CellType, FunctionType, TracebackType, FrameType)):
        return ""
    if getattr(holder, "__dict__", None) is held:
        return ""
    try:
        own = _attributes_of(holder)
    except Exception:  # a property of the program's that fails
        return ".…"
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
            of = "last exception" if root.text == "last exception" else raised or "an exception"
            held = "" if root.text == "last exception" else f", held by {root.text}"
            return Holder("traceback", f"traceback of {of}: {found[1]}{held}")
        if found:
            return Holder(found[0], f"{found[1]}, held by {root.text}")
        step = step[1]
    path = _path(way)
    is_plain = path.count("[") + path.count(".") <= 1
    return Holder(root.kind, root.text, "" if is_plain else root.name + path)


def _owner(thing: Any) -> Any:
    """The object whose attributes a dictionary has, or the thing itself."""
    if not isinstance(thing, dict):
        return thing
    owners = (o for o in gc.get_referrers(thing) if getattr(o, "__dict__", None) is thing)
    return next(owners, thing)


def _find_cycle(passed: list[Way]) -> Holder | None:
    """Nothing that lives by itself holds it, so some holder is held by what it holds."""
    for way in passed:
        inside = {}
        step: Way | None = way
        while step is not None:
            inside[id(step[0])] = step[0]
            step = step[1]
        for referrer in gc.get_referrers(way[0]):
            if id(referrer) not in inside:
                continue
            owner, held = _owner(referrer), _owner(way[0])
            if owner is held and isinstance(way[0], dict):
                continue  # an object and its attributes are no cycle yet
            return Holder("cycle", f"cycle through {type(owner).__name__}{_step(owner, held)}")
    return None


# ---- asking ----


def _tensors_at(address: int, region: str | None) -> list[Any]:
    """Every tensor object with that address: they are found in what holds them."""
    found: dict[int, Any] = {}
    seen: set[int] = set()

    def look_at(thing: Any) -> None:
        if not _is_tensor(thing) or id(thing) in seen:
            return
        seen.add(id(thing))
        if _address_of(thing) == address and (region is None or _region_of(thing) == region):
            found[id(thing)] = thing

    for container in gc.get_objects():
        for thing in _all_referents(container):
            look_at(thing)
    for frame, _ in _running_frames():
        for _, value in _variables(frame):
            look_at(value)
            for thing in _all_referents(value) if _is_hidden(value) else ():
                look_at(thing)
    return list(found.values())


def who_holds(target: Any, *, region: str | None = None) -> list[Holder]:
    """
    The Python objects that keep a buffer alive; 'target' is its address or a tensor. Empty when
    none can be seen: then it is held outside Python, or not at all. It goes through all objects
    once for each step of the way, about a tenth of a second each.
    """
    existing = frozenset(map(id, gc.get_objects()))
    address = target if isinstance(target, int) else _address_of(target)
    if address is None:
        return []
    if not isinstance(target, int) and region is None:
        region = _region_of(target)
    tensors = _tensors_at(address, region)
    if not isinstance(target, int) and not any(tensor is target for tensor in tensors):
        tensors.append(target)
    search = _Search(existing)
    holders: dict[str, Holder] = {}
    while tensors:
        for holder in search.holders_of(tensors.pop()):
            holders.setdefault(holder.text, holder)
    return list(holders.values())[:HOLDERS]
