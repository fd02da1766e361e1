# SPDX-License-Identifier: Apache-2.0
"""What a program tells: names, marks, allocations of other runtimes; tracking on and off."""

from __future__ import annotations

import os
from _thread import allocate_lock

from ttmem import _context, _library
from ttmem._library import Inactive

TYPE_CHECKING = False  # as in _library
if TYPE_CHECKING:
    from typing import Any, Iterable

REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE", "CB", "KERNEL")

_DEVICES = 1024
_switch = allocate_lock()


def is_active() -> bool:
    """Whether this process is tracked now."""
    library = _library._loaded
    return library is not None and library.is_enabled() != 0


def mark(name: str) -> None:
    """A moment in the life of the program, "after warm-up", shown and compared by that name."""
    library = _library._loaded
    if library is not None:
        library.mark(str(name).encode("utf-8", "replace"))


def reset_peaks() -> None:
    """From now on `snapshot().peaks`, and what `tt-mem dump` shows, are peaks since this call."""
    library = _library._loaded
    if library is not None:
        library.reset_peaks()


def track_buffer(tensor: Any, name: str = "", context: str = "") -> bool:
    """
    Gives the allocation behind a tensor on a device a name and a context. Returns whether there
    was one to name. Never raises, whatever it is given.
    """
    library = _library._loaded
    if library is None:
        return False
    try:
        # An id is unique in the process, so that device and region need not be asked for.
        number = tensor.buffer_unique_id()
        if number is None:  # on the host, or given back: ttnn would log a fatal error
            return False
        return library.name_unique(number, tensor.buffer_address(), name, context)
    except AttributeError:  # a ttnn that has no ids, or no tensor at all
        return _track_at(library, tensor, name, context)
    except Exception:  # of ttnn, of something that is no tensor: never the program's business
        return False


def _track_at(library: _library.Library, tensor: Any, name: str, context: str) -> bool:
    try:
        device = tensor.device().get_device_ids()[0]
        region = tensor.memory_config().buffer_type.value
        return library.name_at(device, region, tensor.buffer_address(), 2**64 - 1, name, context)
    except Exception:  # as above
        return False


def _region_number(region: str | int) -> int:
    return REGIONS.index(region) if isinstance(region, str) else int(region)


def _devices_number(library: _library.Library, devices: int | Iterable[int]) -> int:
    if isinstance(devices, int):
        if not 0 <= devices < _DEVICES:
            raise ValueError(f"a device id is 0 to {_DEVICES - 1}")
        return devices
    ids = list(devices)
    return library.devices(ids)


def allocate_with_context(
    device: int | Iterable[int],
    size: int,
    region: str | int,
    buffer_id: int,
    name: str = "",
    context: str = "",
    *,
    address: int | None = None,
    footprint: int = 0,
    allocator: int = 0,
) -> bool:
    """
    Tells of an allocation that a runtime other than TT-Metal has made. 'device' is an id, or the
    ids of a mesh; 'region' is a name or number of REGIONS. What is said of 'allocator', region and
    'buffer_id' later concerns this one. Returns whether it was told; never raises.
    """
    library = _library._loaded or _library.load()
    try:
        if library is None or not library.is_enabled():
            return False
        number = _region_number(region)
        place = buffer_id if address is None else address
        if size < 1 or min(buffer_id, place, footprint, allocator) < 0:
            return False
        devices = _devices_number(library, device)
        library.alloc(buffer_id, place, size, footprint, devices, allocator, number)
        if name or context:
            library.name(allocator, number, buffer_id, name, context)
    except Exception:  # values that make no sense
        return False
    return True


def deallocate(buffer_id: int, region: str | int, *, allocator: int = 0) -> None:
    """The end of what allocate_with_context() told of."""
    library = _library._loaded
    try:
        if library is not None:
            library.free(allocator, _region_number(region), buffer_id)
    except Exception:  # values that make no sense
        return


def start() -> None:
    """
    Begins to track this process: before ttnn is imported or after it, with devices open and
    tensors alive. What is live then is known exactly, but not where it came from. Raises Inactive
    when that cannot be done, and says why.
    """
    with _switch:
        changed = _library.install_hook()
        library = _library._loaded
        if changed < 0 or library is None:
            raise Inactive(f"cannot listen to TT-Metal in this process: {os.strerror(-changed)}")
        failure = library.enable()
        if failure < 0:
            raise Inactive(f"cannot switch tracking on: {os.strerror(-failure)}")
        _context.tell()


def stop() -> None:
    """Ends tracking. What is allocated and freed from now on is not known."""
    with _switch:
        library = _library._loaded
        if library is not None:
            library.disable()
