# SPDX-License-Identifier: Apache-2.0
"""libttmem's functions through ctypes, for a Python that cannot load the module in C."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Sequence


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
        ("banks", ctypes.c_uint32),
        ("reserved1", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint64),
    ]


def _text(text: str) -> bytes | None:
    return text.encode("utf-8", "replace") if text else None


class CtypesLibrary:
    """As ttmem._library.Library. Those that are called often keep the GIL: they never wait."""

    def __init__(self) -> None:
        self._quick: Any = None
        self._slow: Any = None

    def attach(self, path: str, is_loading: bool, /) -> bool:
        mode = os.RTLD_LAZY if is_loading else os.RTLD_LAZY | os.RTLD_NOLOAD
        try:
            quick = ctypes.PyDLL(path, mode=mode)
            slow = ctypes.CDLL(path, mode=mode)  # switching waits for threads inside TT-Metal
            self._declare(quick, slow)
        except (OSError, AttributeError):
            return False
        self._quick, self._slow = quick, slow
        return True

    def _declare(self, quick: Any, slow: Any) -> None:
        text, number = ctypes.c_char_p, ctypes.c_uint64
        region, short = ctypes.c_uint8, ctypes.c_uint16
        void_functions = {
            "context_set": [text],
            "mark": [text],
            "reset_peaks": [],
            "name": [short, region, number, text, text],
            "alloc": [ctypes.POINTER(Allocation)],
            "free": [short, region, number],
        }
        for name, arguments in void_functions.items():
            function = getattr(quick, f"ttmem_{name}")
            function.argtypes, function.restype = arguments, None
        quick.ttmem_is_enabled.argtypes = []
        quick.ttmem_name_at.argtypes = [short, region, number, number, text, text]
        quick.ttmem_name_unique.argtypes = [number, number, text, text]
        quick.ttmem_devices.argtypes = [ctypes.POINTER(short), ctypes.c_uint32]
        quick.ttmem_devices.restype = ctypes.c_uint32
        slow.ttmem_enable.argtypes = []
        slow.ttmem_disable.argtypes = []
        slow.ttmem_disable.restype = None

    def install_hook(self, path: str, /) -> int:
        hook = ctypes.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
        return int(hook.ttmem_hook_install())

    def is_enabled(self) -> int:
        return int(self._quick.ttmem_is_enabled())

    def enable(self) -> int:
        return int(self._slow.ttmem_enable())

    def disable(self) -> None:
        self._slow.ttmem_disable()

    def context_set(self, path: bytes, /) -> None:
        self._quick.ttmem_context_set(path)

    def mark(self, name: bytes, /) -> None:
        self._quick.ttmem_mark(name)

    def reset_peaks(self) -> None:
        self._quick.ttmem_reset_peaks()

    def name_unique(self, id: int, address: int, name: str, context: str, /) -> bool:
        return bool(self._quick.ttmem_name_unique(id, address, _text(name), _text(context)))

    def name_at(
        self, device: int, region: int, address: int, id: int, name: str, context: str, /
    ) -> bool:
        texts = _text(name), _text(context)
        return bool(self._quick.ttmem_name_at(device, region, address, id, *texts))

    def name(self, allocator: int, region: int, id: int, name: str, context: str, /) -> None:
        self._quick.ttmem_name(allocator, region, id, _text(name), _text(context))

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
    ) -> None:
        self._quick.ttmem_alloc(
            Allocation(
                id=id,
                address=address,
                bytes=bytes,
                footprint_bytes=footprint,
                devices=devices,
                allocator=allocator,
                region=region,
            )
        )

    def free(self, allocator: int, region: int, id: int, /) -> None:
        self._quick.ttmem_free(allocator, region, id)

    def devices(self, ids: Sequence[int], /) -> int:
        return int(self._quick.ttmem_devices((ctypes.c_uint16 * len(ids))(*ids), len(ids)))
