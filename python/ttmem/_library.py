# SPDX-License-Identifier: Apache-2.0
"""Finds libttmem, the hook and the command, and says how the library's functions are called.

The library is used when the process has it already, or when tracking is asked for; it is never
loaded into a program that has nothing to do with it. Its functions are called through _fast, a
module in C; where that cannot be loaded, through ctypes (_ctypes_library), which is slower.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing takes longer to import than all of this package
if TYPE_CHECKING:
    from typing import Protocol, Sequence

    class Library(Protocol):
        """The functions of ttmem.h. Those that are called often keep the GIL: they never wait."""

        def is_enabled(self) -> int: ...
        def enable(self) -> int: ...
        def disable(self) -> None: ...
        def context_set(self, path: bytes, /) -> None: ...
        def mark(self, name: bytes, /) -> None: ...
        def reset_peaks(self) -> None: ...
        def name_unique(self, id: int, address: int, name: str, context: str, /) -> bool: ...
        def name_at(
            self, device: int, region: int, address: int, id: int, name: str, context: str, /
        ) -> bool: ...
        def name(
            self, allocator: int, region: int, id: int, name: str, context: str, /
        ) -> None: ...
        def alloc(
            self,
            id: int,
            address: int,
            bytes: int,
            footprint: int,
            devices: int,
            allocator: int,
            region: int,
            /,
        ) -> None: ...
        def free(self, allocator: int, region: int, id: int, /) -> None: ...
        def devices(self, ids: Sequence[int], /) -> int: ...
        def attach(self, path: str, is_loading: bool, /) -> bool: ...
        def install_hook(self, path: str, /) -> int: ...


LIBRARY = "libttmem.so.0"
HOOK = "libttmem-hook.so"
COMMAND = "tt-mem"
FAST = "_fast.abi3.so"

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class Inactive(RuntimeError):
    """Something was asked that only a tracked program can answer; the message says what lacks."""


def folders() -> list[str]:
    """Where our files may be: chosen, in the package, beside the command."""
    found = []
    chosen = os.environ.get("TTMEM_LIBRARY")
    if chosen:
        found.append(chosen if os.path.isdir(chosen) else os.path.dirname(chosen))
    found.append(os.path.join(_PACKAGE, "_native"))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        command = os.path.join(folder, COMMAND)
        if folder and os.access(command, os.X_OK):
            own = os.path.dirname(os.path.realpath(command))
            found.append(own)
            machine = f"{os.uname().machine}-linux-gnu"
            found += [os.path.join(own, "..", lib) for lib in ("lib", f"lib/{machine}", "lib64")]
            break
    return found


def find_file(name: str) -> str | None:
    for folder in folders():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return os.path.realpath(path)
    return None


def load_fast() -> Library | None:
    """From where our other files are, as in a build folder it is not in the package."""
    path = find_file(FAST)
    if path is None:
        return None
    try:
        from importlib.machinery import ExtensionFileLoader, ModuleSpec

        loader = ExtensionFileLoader("_fast", path)
        module = loader.create_module(ModuleSpec("_fast", loader, origin=path))
        loader.exec_module(module)
    except Exception:  # of another kind of Python
        return None
    return module


def _caller() -> Library:
    """Whatever calls the library: attached to none yet."""
    fast = load_fast()
    if fast is not None:
        return fast
    from ttmem._ctypes_library import CtypesLibrary

    return CtypesLibrary()


_loaded: Library | None = None
_unattached: Library | None = None


def _attach(path: str, is_loading: bool) -> Library | None:
    global _loaded, _unattached
    if _unattached is None:
        _unattached = _caller()
    if _unattached.attach(path, is_loading):  # not when it is older than this package
        _loaded = _unattached
    return _loaded


def _is_mapped() -> bool:
    """Whether the process may have the library: looked up before anything is loaded to ask."""
    try:
        with open("/proc/self/maps", "rb") as file:
            return LIBRARY.partition(".")[0].encode() in file.read()
    except OSError:
        return True


def loaded() -> Library | None:
    """The library, if this process has it."""
    if _loaded is not None or not sys.platform.startswith("linux") or not _is_mapped():
        return _loaded
    return _attach(LIBRARY, False)


def load() -> Library | None:
    """The library, loaded if it can be found."""
    library = loaded()
    if library is not None:
        return library
    path = find_file(LIBRARY)
    return _attach(path, True) if path else None


def install_hook() -> int:
    """
    The hook, in front of whatever is loaded from now on. Returns as ttmem_hook_install(). Raises
    Inactive when it or the library cannot be found or loaded.
    """
    path = find_file(HOOK)
    if path is None:
        raise Inactive(f"cannot find {HOOK} in the package, beside tt-mem or in TTMEM_LIBRARY")
    library = load()
    if library is None:
        raise Inactive(f"cannot find {LIBRARY} beside the hook")
    try:
        return library.install_hook(path)
    except OSError as failure:
        raise Inactive(f"cannot load {path}: {failure}") from None


def command() -> str:
    """The path of tt-mem. Raises Inactive when there is none."""
    path = find_file(COMMAND)
    if path is None:
        raise Inactive("cannot find the command tt-mem in the package, on PATH or in TTMEM_LIBRARY")
    return path


# A program that was started to be tracked may have us in front of everything else.
if os.environ.get("TT_ALLOC_TRACKING_ENABLED") == "1":
    load()
else:
    loaded()
