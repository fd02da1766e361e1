# SPDX-License-Identifier: Apache-2.0
"""Programs that have another allocator or a heap profiler preloaded, beside libttmem."""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
from pathlib import Path

import pytest
from support import (
    IS_SANITIZED,
    PATIENCE_S,
    TRACKED_WORKER,
    Server,
    Tracked,
    clean_env,
    wait_for,
    wait_until_exact,
)

ALLOCATORS = {"jemalloc": "libjemalloc2", "tcmalloc_minimal": "libtcmalloc-minimal4"}

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer is an allocator itself")


@pytest.mark.parametrize("name", ALLOCATORS)
def test_a_program_with_another_allocator_is_known_exactly(server: Server, name: str) -> None:
    library = ctypes.util.find_library(name)
    if not library:
        pytest.skip(f"needs {name} (Debian: {ALLOCATORS[name]})")
    with Tracked(server, {"LD_PRELOAD": library}) as worker:
        worker.do("storm 4 50000 1")
        assert library in Path(f"/proc/{worker.pid}/maps").read_text()
        worker.do("threads 300 8")
        wait_until_exact(server, worker)
        worker.do("fork 1 1000")
        wait_for(lambda: len(server.status()["clients"]) == 2, "the child to be known")
        worker.do("reap")
        worker.do("disable")
        worker.do("enable")
        worker.do("alloc 0 0 10 1000")
        wait_for(lambda: server.check()["lives"] == 10, "what came since to be known")
        assert worker.end("exit 7") == 7


def test_a_program_under_heaptrack_is_known_exactly(server: Server, folder: Path) -> None:
    heaptrack = shutil.which("heaptrack")
    if not heaptrack:
        pytest.skip("needs heaptrack")
    done = subprocess.run(
        [heaptrack, "-o", str(folder / "heap"), TRACKED_WORKER],
        input="alloc 0 0 100 1000\nthreads 50 4\nfree 30\nexit 0\n",
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
        env=clean_env(TTMEM_SOCKET=server.socket, TT_ALLOC_TRACKING_ENABLED="1"),
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.glob("heap*")), done.stdout
    wait_for(lambda: not server.status()["clients"], "its end to be known")
    status = server.check()
    assert (status["allocs"], status["frees"]) == (200, 80)  # a thread keeps one of two
