# SPDX-License-Identifier: Apache-2.0
"""The tracked program: runs what the test sends it, and says what ttnn's allocators hold.

usage: driver.py IN OUT

IN and OUT are file descriptors: a line with a JSON string of Python comes in, a line with the
outcome goes out. stdin and stdout are left to ttnn and to what the test wants to see of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
import traceback
from typing import Any

REGIONS = ("DRAM", "L1", "L1_SMALL", "TRACE")

names: dict[str, Any] = {"os": os, "threading": threading, "ctypes": ctypes}
meshes: list[Any] = []  # the open ones, each with an allocator of its own


def holds(mesh: Any) -> list[list[Any]]:
    """[chip, region, blocks, bytes] as the allocator of a device or mesh counts."""
    ttnn = names["ttnn"]
    rows = []
    for region in REGIONS:
        view = ttnn.get_memory_view(mesh, getattr(ttnn.BufferType, region))
        blocks = sum(block["allocated"] == "yes" for block in view.block_table)
        size = view.total_bytes_allocated_per_bank * view.num_banks
        if blocks:
            rows += [[chip, region, blocks, size] for chip in mesh.get_device_ids()]
    return rows


def library() -> ctypes.CDLL:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        (path,) = set(re.findall(r"\S*/libtt_metal\.so", maps.read()))
    return ctypes.CDLL(path)


def cb_bytes(chip: int) -> int:
    """The runtime's own count: bytes of L1 under circular buffers of all programs it keeps."""
    metal = library()
    find = getattr(metal, "_ZN2tt8tt_metal6detail15GetActiveDeviceEi")
    find.restype = ctypes.c_void_p
    count = getattr(metal, "_ZNK2tt8tt_metal6Device22get_total_cb_allocatedEv")
    count.restype = ctypes.c_uint64
    return count(ctypes.c_void_p(find(chip)))


def open_device(chip: int = 0, **options: Any) -> Any:
    device = names["ttnn"].open_device(device_id=chip, **options)
    meshes.append(device)
    return device


def open_mesh(rows: int, columns: int, **options: Any) -> Any:
    ttnn = names["ttnn"]
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(rows, columns), **options)
    meshes.append(mesh)
    return mesh


def close(mesh: Any) -> None:
    ttnn = names["ttnn"]
    meshes[:] = [other for other in meshes if other is not mesh]
    ttnn.close_mesh_device(mesh)


def tensor(device: Any, *shape: int, memory: Any = None) -> Any:
    ttnn = names["ttnn"]
    return ttnn.empty(
        shape,
        dtype=ttnn.bfloat16,
        layout=ttnn.TILE_LAYOUT,
        device=device,
        memory_config=memory or ttnn.DRAM_MEMORY_CONFIG,
    )


def in_threads(count: int, work: Any) -> None:
    """Calls work(0) … work(count - 1), each in a thread of its own; raises what one of them did."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:  # told to the test
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def run(code: str) -> dict[str, Any]:
    """The outcome: 'value' is that of the variable 'result', if the code has set it."""
    names.pop("result", None)
    try:
        exec(compile(code, "<test>", "exec"), names)
    except Exception as failure:
        text = traceback.format_exc()
        return {"failure": type(failure).__name__, "text": str(failure), "trace": text}
    return {"value": names.get("result")}


def main() -> None:
    commands = os.fdopen(int(sys.argv[1]), encoding="utf-8")
    answers = os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
    names.update(
        open_device=open_device,
        open_mesh=open_mesh,
        close=close,
        tensor=tensor,
        in_threads=in_threads,
        meshes=meshes,
        cb_bytes=cb_bytes,
    )
    for line in commands:
        outcome = run(json.loads(line))
        outcome["holds"] = [row for mesh in meshes for row in holds(mesh)]
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
