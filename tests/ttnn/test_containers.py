# SPDX-License-Identifier: Apache-2.0
"""An unmodified ttnn in a container, tracked by a server outside: docs/containers.md."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import provision
import pytest
from basics import IS_ROOT, wait_for
from containers import INSTALLED, Host, child_of, why_no_namespaces
from programs import DRIVER, HOOK, PYTHON, Program, kernel_cache, tracked_holds
from tracked import row_of

obstacle = "needs root, to make namespaces" if not IS_ROOT else why_no_namespaces()
pytestmark = pytest.mark.skipif(obstacle != "", reason=obstacle)


def test_exact_from_outside(folder: Path, make_server: Any) -> None:
    host = Host(folder)
    for library in Path(HOOK).resolve().parent.glob("libttmem*.so*"):
        if library.is_file():
            shutil.copy(library, host.bin)
    server = make_server("tt-mem")
    server.socket = str(host.sockets / "tt-mem.sock")
    server.start()
    place = folder / "program"
    place.mkdir()
    kernel_cache().mkdir(parents=True, exist_ok=True)
    same = [
        provision.cache_folder(),  # ttnn and compiled kernels
        Path(PYTHON).resolve().parent.parent,
        DRIVER.parent,
        place,
    ]
    mounts = {path: str(path) for path in same if not path.is_relative_to("/usr")}
    entry = ("sh", "-c", f'eval "$({INSTALLED}/tt-mem env)"; exec "$@"', "sh")
    within = host.command(*entry, mounts={**mounts, host.sockets: "/run/tt-mem"})
    env: dict[str, str | None] = {"LD_LIBRARY_PATH": None, "XDG_RUNTIME_DIR": None}
    with Program(place, env=env, within=within) as program:
        pid = child_of(program.pid)
        assert program.do("result = os.getpid()") == 1
        program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(4)]")
        program.do("in_threads(3, lambda n: kept.append(tensor(device, 64, 64)))")
        assert program.holds[0, "DRAM"][0] == 7
        wait_for(lambda: tracked_holds(row_of(server, pid)) == program.holds, "exactness")
        (client,) = server.check()["clients"]
        assert client["pid"] == pid and client["runtime"].startswith("ttnn")
        program.do("del kept[::2]")
        wait_for(lambda: tracked_holds(row_of(server, pid)) == program.holds, "exactness")
