# SPDX-License-Identifier: Apache-2.0
"""What the program is about while it allocates: nested names, for each thread and each task.

libttmem has one context for each thread. A Python thread may run many tasks in turn, so the path
is kept in a context variable, which Python switches with the task, and the library is told the
whole path whenever it changes:

- entering and leaving tell it;
- a coroutine or generator that was decorated tells it each time it goes on and each time it waits;
- an asyncio callback tells it when it begins, once a context was entered inside an event loop.
"""

from __future__ import annotations

import sys
from _contextvars import ContextVar

from ttmem import _library

TYPE_CHECKING = False  # as in _library
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any, Callable, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

_PATH: ContextVar[bytes] = ContextVar("ttmem_context", default=b"")
_get_path, _set_path = _PATH.get, _PATH.set

_is_following_asyncio = False
_modules = sys.modules

_CO_GENERATOR, _CO_COROUTINE = 0x20, 0x80  # as in inspect, which takes long to import


def tell(path: bytes | None = None) -> None:
    """Tells the library what this thread is about now."""
    library = _library._loaded
    if library is not None:
        library.context_set(_PATH.get() if path is None else path)


def _follow_asyncio() -> None:
    """
    From now on every callback of asyncio's own loops begins with the path of its task, and ends
    with that of none.
    """
    global _is_following_asyncio
    _is_following_asyncio = True
    import functools
    from asyncio import events

    run = events.Handle._run

    @functools.wraps(run)
    def run_in_context(handle: Any) -> Any:
        own = getattr(handle, "_context", None)
        before = _PATH.get()
        path = own.get(_PATH, b"") if own is not None else before
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
    asyncio = sys.modules.get("asyncio.events")
    return asyncio is not None and asyncio._get_running_loop() is not None


class context:  # noqa: N801, it is used like a function
    """
    `with ttmem.context("model_init"):` or `@ttmem.context("model_init")`. Shown with every
    allocation that is made inside, as "model_init/attention" when they nest. Each thread and each
    asyncio task has its own. Use one object for one `with` at a time; a decorator may be entered
    as often as it is called.
    """

    __slots__ = ("_name", "_tokens")

    def __init__(self, name: str):
        self._name = str(name).encode("utf-8", "replace")
        self._tokens: list[Token[bytes]] = []

    def __enter__(self) -> context:
        outer = _get_path()
        path = outer + b"/" + self._name if outer else self._name
        self._tokens.append(_set_path(path))
        library = _library._loaded
        if library is not None:
            library.context_set(path)
            if not _is_following_asyncio and "asyncio.events" in _modules and _is_in_event_loop():
                _follow_asyncio()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _PATH.reset(self._tokens.pop())
        except (ValueError, IndexError):  # left by another task than the one that entered
            pass
        library = _library._loaded
        if library is not None:
            library.context_set(_get_path())

    def __call__(self, function: _F) -> _F:
        from functools import wraps

        name = self._name.decode()
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

        @wraps(function)
        def in_call(*args: Any, **kwargs: Any) -> Any:
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
