# SPDX-License-Identifier: Apache-2.0
"""What every test stands on: where the program is, how patient to be, how to wait."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any, Callable

import pytest

TT_MEM = os.environ.get("TT_MEM", "tt-mem")
LONG = os.environ.get("TTM_LONG", "") not in ("", "0")
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
SOMEBODY = 65533

needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root, to be several users")


def _has_symbol(*names: bytes) -> bool:
    with contextlib.suppress(OSError):
        binary = Path(shutil.which(TT_MEM) or TT_MEM).read_bytes()
        return any(name in binary for name in names)
    return False


# The thread sanitizer has a thread and files of its own in every program.
IS_THREAD_SANITIZED = _has_symbol(b"__tsan_init")
IS_SANITIZED = IS_THREAD_SANITIZED or _has_symbol(b"__asan_init", b"__ubsan_")
SLOWNESS = 10 if IS_SANITIZED else 1

# Ends a test that hangs; a passing test never gets near it.
PATIENCE_S = 30.0 * (4 if IS_SANITIZED else 1)

SANITIZER_WORDS = ("Sanitizer", "runtime error:", "Assertion")


def wait_for(
    condition: Callable[[], Any], what: str = "a condition", timeout_s: float = PATIENCE_S
) -> Any:
    """Asks until the answer is true and returns it."""
    until = time.monotonic() + timeout_s
    pause_s = 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            pytest.fail(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.02)


def raise_fd_limit(wanted: int) -> None:
    """Skips the test where that many fds cannot be had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} file descriptors, the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
