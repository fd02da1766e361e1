# SPDX-License-Identifier: Apache-2.0
"""What the program is about while it allocates: nested names, for each thread and each task.

libttmem has one context for each thread. A Python thread may run many tasks in turn, so the path
is kept in a context variable, which Python switches with the task, and the library is told the
whole path whenever it changes:

- entering and leaving tell it;
- a coroutine or generator that was decorated tells it each time it goes on and each time it waits;
- an asyncio callback tells it when it begins, once a context was entered inside an event loop;
- what asyncio.to_thread() runs tells it when it begins and when it ends.

A path may be found in a thread where nobody was told of it: copies of Python's context are run in
threads of pools. Nobody says when such a copy ends, and the thread goes on with something else. So
what was entered in another thread is not told of when something inside of it is left.

Contexts may be left in another order than they were entered: generators take turns, each with a
`with` of its own. So what was entered is a chain, and who leaves takes out his own link of it.
"""

from __future__ import annotations

import sys
from _contextvars import ContextVar
from _thread import get_ident

from ttmem import _library

TYPE_CHECKING = False  # as in _library
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

# A link: the path, the thread that entered it, the link outside, its own name, and the link that it
# is made anew from: who has entered it knows it by that one.
_NOWHERE = (b"", 0, None, b"", None)
_PATH: ContextVar[tuple[Any, ...]] = ContextVar("ttmem_context", default=_NOWHERE)
_get_path, _set_path, _reset_path = _PATH.get, _PATH.set, _PATH.reset

_is_following_callbacks = False
_running_loop: Callable[[], Any] | None = None  # asyncio's, once its threads are followed
_modules = sys.modules

# As in inspect, which takes long to import.
_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200


def tell(path: bytes | None = None) -> None:
    """Tells the library what this thread is about now."""
    library = _library._loaded
    if library is not None:
        library.context_set(_get_path()[0] if path is None else path)


def _without(left: tuple[Any, ...]) -> tuple[Any, ...]:
    """The chain of this task without that link; as it is where it is not in it."""
    innermost = link = _get_path()
    inside = []
    while link is not left and link[4] is not left:
        inside.append(link)
        link = link[2]
        if link is None:  # entered by another task
            return innermost
    link = link[2]
    for old in reversed(inside):
        path = link[0] + b"/" + old[3] if link[0] else old[3]
        link = (path, old[1], link, old[3], old[4] or old)
    return link


def _follow_asyncio() -> None:
    if _running_loop is None:
        _follow_threads()
    if _is_in_event_loop():
        _follow_callbacks()


def _follow_threads() -> None:
    """From now on what asyncio.to_thread() runs has the path of its task."""
    global _running_loop
    import asyncio
    import functools

    _running_loop = asyncio._get_running_loop
    to_thread: Any = asyncio.to_thread

    @functools.wraps(to_thread)
    async def to_thread_in_context(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            path, _, outer, name, first = link = _get_path()  # of the copy that this is run in
            _set_path((path, get_ident(), outer, name, first or link))
            tell()
            try:
                return function(*args, **kwargs)
            finally:
                tell(b"")

        return await to_thread(run)

    asyncio.to_thread = asyncio.threads.to_thread = to_thread_in_context


def _follow_callbacks() -> None:
    """
    From now on every callback of asyncio's own loops begins with the path of its task, and ends
    with that of none.
    """
    global _is_following_callbacks
    _is_following_callbacks = True
    import functools
    from asyncio import events

    run = events.Handle._run

    @functools.wraps(run)
    def run_in_context(handle: Any) -> Any:
        own = getattr(handle, "_context", None)
        before = _get_path()[0]
        path = own.get(_PATH, _NOWHERE)[0] if own is not None else before
        if path == before:
            return run(handle)
        tell(path)
        try:
            return run(handle)
        finally:
            tell(before)

    # Also when the paths are equal the task may leave a context of its own behind as it waits.
    @functools.wraps(run)
    def run_and_restore(handle: Any) -> Any:
        try:
            return run_in_context(handle)
        finally:
            tell()

    events.Handle._run = run_and_restore  # type: ignore[method-assign, assignment]


def _is_in_event_loop() -> bool:
    return _running_loop is not None and _running_loop() is not None


class context:  # noqa: N801, it is used like a function
    """
    `with ttmem.context("model_init"):` or `@ttmem.context("model_init")`. Shown with every
    allocation that is made inside, as "model_init/attention" when they nest. Each thread and each
    asyncio task has its own. Use one object for one `with` at a time; a decorator may be entered
    as often as it is called.
    """

    __slots__ = ("_entered", "_name")

    def __init__(self, name: str):
        self._name: str | bytes = name
        # The token and the link of the last that was entered, and those before it.
        self._entered: tuple[Any, ...] | None = None

    def __enter__(self) -> context:
        library = _library._loaded
        if library is None:
            return self
        name = self._name
        if name.__class__ is not bytes:
            name = self._name = str(name).encode("utf-8", "replace")
        outer = _get_path()
        path = outer[0] + b"/" + name if outer[0] else name
        link = (path, get_ident(), outer, name, None)
        self._entered = (_set_path(link), link, self._entered)
        library.context_set(path)
        if (
            not _is_following_callbacks
            and "asyncio.events" in _modules
            and (_running_loop is None or _running_loop() is not None)
        ):
            _follow_asyncio()
        return self

    def __exit__(self, *_: object) -> None:
        if self._entered is None:  # tracking began inside
            return
        token, link, self._entered = self._entered
        try:
            if _get_path() is link:
                _reset_path(token)  # a third of what it takes to set another
                link = link[2]
            else:
                link = _without(link)
                _set_path(link)
        except ValueError:  # left in a copy of the context that it was entered in
            link = link[2]
            _set_path(link)
        library = _library._loaded
        if library is not None:
            path, thread = link[0], link[1]
            is_ours = not path or thread == get_ident() or _is_in_event_loop()
            library.context_set(path if is_ours else b"")

    def __call__(self, function: _F) -> _F:
        from functools import wraps

        name: Any = self._name
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & _CO_COROUTINE:

            @wraps(function)
            async def in_coroutine(*args: Any, **kwargs: Any) -> Any:
                return await _Steps(name, function(*args, **kwargs).__await__())

            return in_coroutine  # type: ignore[return-value]
        if flags & _CO_GENERATOR:

            @wraps(function)
            def in_generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from _Steps(name, function(*args, **kwargs)))

            return in_generator  # type: ignore[return-value]
        if flags & _CO_ASYNC_GENERATOR:
            return wraps(function)(_async_generator(name, function))  # type: ignore[return-value]

        @wraps(function)
        def in_call(*args: Any, **kwargs: Any) -> Any:
            if _library._loaded is None:
                return function(*args, **kwargs)
            with context(name):
                return function(*args, **kwargs)

        return in_call  # type: ignore[return-value]


class _Steps:
    """Runs a generator or an awaited coroutine, each step of it inside the context."""

    __slots__ = ("_name", "_steps")

    def __init__(self, name: str, steps: Any):
        self._name = name
        self._steps = steps

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        with context(self._name):
            return self._steps.send(value) if value is not None else next(self._steps)

    def throw(self, *failure: Any) -> Any:
        with context(self._name):
            return self._steps.throw(*failure)

    def close(self) -> None:
        with context(self._name):
            self._steps.close()


def _async_generator(name: str, function: Any) -> Any:
    """The same for an asynchronous generator, which may wait within each step."""

    async def in_async_generator(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step = generator.asend(None)
        try:
            while True:
                try:
                    item = await _Steps(name, step)
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield item))
                except GeneratorExit:
                    raise
                except BaseException as failure:
                    step = generator.athrow(failure)
        finally:
            await _Steps(name, generator.aclose())

    return in_async_generator
