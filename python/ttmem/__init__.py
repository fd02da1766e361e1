# SPDX-License-Identifier: Apache-2.0
"""What a Python program has to say about the memory of its Tenstorrent devices, and to ask.

Everything here does nothing, silently, where tracking is not active: a snapshot is empty then, and
says so.

    with ttmem.context("model_init"):           # shown with every allocation inside
        weights = ttnn.to_device(host, device)
    ttmem.track_buffer(weights, name="layer_0_weights")
    ttmem.mark("after warm-up")

    with ttmem.no_leaks():                      # raises LeakError with lines, bytes and holders
        model(tokens)

Tracking is active under `tt-mem run`, with the environment of `tt-mem env`, and after start().
"""

from __future__ import annotations

from ttmem._context import context
from ttmem._library import Inactive
from ttmem._tell import (
    allocate_with_context,
    deallocate,
    is_active,
    mark,
    reset_peaks,
    start,
    stop,
    track_buffer,
)

TYPE_CHECKING = False  # typing takes longer to import than all of this package
if TYPE_CHECKING:
    from typing import Any

    from ttmem._holders import Holder, Holders, who_holds
    from ttmem._snapshot import (
        Buffer,
        Change,
        Diff,
        LeakError,
        Origin,
        Snapshot,
        diff,
        no_leaks,
        report,
        snapshot,
    )

__version__ = "0.1.0"

__all__ = [
    "Buffer",
    "Change",
    "Diff",
    "Holder",
    "Holders",
    "Inactive",
    "LeakError",
    "Origin",
    "Snapshot",
    "allocate_with_context",
    "context",
    "deallocate",
    "diff",
    "is_active",
    "mark",
    "no_leaks",
    "report",
    "reset_peaks",
    "snapshot",
    "start",
    "stop",
    "track_buffer",
    "who_holds",
]

# What asks is loaded when it is used: most programs only tell, and import us early.
_LATER = {
    **dict.fromkeys(("Holder", "Holders", "who_holds"), "ttmem._holders"),
    **dict.fromkeys(
        ("Buffer", "Change", "Diff", "LeakError", "Origin", "Snapshot", "diff", "no_leaks"),
        "ttmem._snapshot",
    ),
    **dict.fromkeys(("report", "snapshot"), "ttmem._snapshot"),
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'ttmem' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
