# SPDX-License-Identifier: Apache-2.0
"""Finds libttmem, the hook and the command, and says how the library's functions are called.

The library is used when the process has it already, or when tracking is asked for; it is never
loaded into a program that has nothing to do with it.
"""

from __future__ import annotations

import ctypes
import os
import sys

LIBRARY = "libttmem.so.0"
HOOK = "libttmem-hook.so"
COMMAND = "tt-mem"

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class Inactive(RuntimeError):
    """Something was asked that only a tracked program can answer; the message says what lacks."""


class Allocation(ctypes.Structure):
    """struct ttmem_allocation"""

    _fields_ = [
        ("id", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("footprint_bytes", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
        ("devices", ctypes.c_uint32),
        ("cores", ctypes.c_uint32),
        ("allocator", ctypes.c_uint16),
        ("region", ctypes.c_uint8),
        ("kind", ctypes.c_uint8),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64 * 2),
    ]


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


class Library:
    """The functions of ttmem.h. Those that are called often keep the GIL: they never wait."""

    def __init__(self, path: str):
        self.path = path
        quick = ctypes.PyDLL(path)
        slow = ctypes.CDLL(path)  # switching waits for threads that are inside TT-Metal
        text, number = ctypes.c_char_p, ctypes.c_uint64
        region, device = ctypes.c_uint8, ctypes.c_uint16

        self.is_enabled = quick.ttmem_is_enabled
        self.is_enabled.argtypes = []
        self.context_set = quick.ttmem_context_set
        self.context_set.argtypes = [text]
        self.context_set.restype = None
        self.mark = quick.ttmem_mark
        self.mark.argtypes = [text]
        self.mark.restype = None
        self.reset_peaks = quick.ttmem_reset_peaks
        self.reset_peaks.argtypes = []
        self.reset_peaks.restype = None
        self.name_at = quick.ttmem_name_at
        self.name_at.argtypes = [device, region, number, number, text, text]
        self.name = quick.ttmem_name
        self.name.argtypes = [ctypes.c_uint16, region, number, text, text]
        self.name.restype = None
        self.alloc = quick.ttmem_alloc
        self.alloc.argtypes = [ctypes.POINTER(Allocation)]
        self.alloc.restype = None
        self.free = quick.ttmem_free
        self.free.argtypes = [ctypes.c_uint16, region, number]
        self.free.restype = None
        self.devices = quick.ttmem_devices
        self.devices.argtypes = [ctypes.POINTER(ctypes.c_uint16), ctypes.c_uint32]
        self.devices.restype = ctypes.c_uint32
        self.enable = slow.ttmem_enable
        self.enable.argtypes = []
        self.disable = slow.ttmem_disable
        self.disable.argtypes = []
        self.disable.restype = None


_loaded: Library | None = None


def _open(path: str) -> Library | None:
    global _loaded
    try:
        _loaded = Library(path)
    except (OSError, AttributeError):  # none, or one that is older than this package
        return None
    return _loaded


def _is_in_process(name: str) -> bool:
    """Asked of the loader, which knows its libraries by the names they give themselves."""
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def loaded() -> Library | None:
    """The library, if this process has it."""
    if _loaded is not None:
        return _loaded
    if not sys.platform.startswith("linux") or not _is_in_process(LIBRARY):
        return None
    return _open(LIBRARY)


def load() -> Library | None:
    """The library, loaded if it can be found."""
    library = loaded()
    if library is not None:
        return library
    path = find_file(LIBRARY)
    return _open(path) if path else None


def load_hook() -> ctypes.CDLL:
    """
    The hook, in front of whatever is loaded from now on. Raises Inactive when it cannot be found
    or loaded.
    """
    if _is_in_process(HOOK):
        return ctypes.CDLL(HOOK, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    path = find_file(HOOK)
    if path is None:
        raise Inactive(f"cannot find {HOOK} in the package, beside tt-mem or in TTMEM_LIBRARY")
    try:
        return ctypes.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
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
