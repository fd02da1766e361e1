# SPDX-License-Identifier: Apache-2.0
"""Pieces of Python that are run with the package, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from basics import PATIENCE_S
from commands import clean_env

PACKAGE = os.environ.get("TTMEM_PACKAGE", str(Path(__file__).parents[2] / "python"))
BUILD = os.environ.get("TTMEM_LIBRARY", "")

# Stands in for ttnn: what it makes is told to libttmem by hand.
FAKE_TTNN = """
    import itertools, types
    import ttmem

    _numbers = itertools.count(1)

    class Tensor:
        def __init__(self, size=4096, region="DRAM"):
            self._id, self._region = next(_numbers), region
            ttmem.allocate_with_context(0, size, region, self._id, address=self._id * 65536)
        def __del__(self):
            ttmem.deallocate(self._id, self._region)
        def buffer_address(self):
            return self._id * 65536
        def buffer_unique_id(self):
            return self._id
        def device(self):
            return types.SimpleNamespace(get_device_ids=lambda: [0])
        def memory_config(self):
            number = ("DRAM", "L1").index(self._region)
            return types.SimpleNamespace(
                buffer_type=types.SimpleNamespace(value=number, name=self._region))

    def zeros(size=4096, region="DRAM"):
        return Tensor(size, region)
"""


def environment(folder: Path, **extra: str | None) -> dict[str, str]:
    return clean_env(
        **{
            "PYTHONPATH": f"{PACKAGE}:{folder}",
            "TTMEM_LIBRARY": BUILD,
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "TT_ALLOC_TRACKING_ENABLED": None,
            **extra,
        }
    )


def run_script(folder: Path, code: str, python: str = sys.executable, **env: str | None) -> Any:
    """Returns what the script left in 'result'; fails with its output when it fails."""
    (folder / "ttnn.py").write_text(textwrap.dedent(FAKE_TTNN))
    script = folder / "script.py"
    tail = "\nimport json as _json\nprint(_json.dumps(result), flush=True)\n"
    script.write_text(textwrap.dedent(code) + tail)
    done = subprocess.run(
        [python, str(script)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **env),
        timeout=PATIENCE_S * 2,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


def run_pytest(
    folder: Path, tests: str, *args: str, has_ttnn: bool = True, **env: str | None
) -> tuple[int, str]:
    """The plugin on a file of tests, with the fake ttnn. Returns the status and the output."""
    if has_ttnn:
        (folder / "ttnn.py").write_text(textwrap.dedent(FAKE_TTNN))
    (folder / "test_it.py").write_text(textwrap.dedent(tests))
    command = [sys.executable, "-m", "pytest", "-p", "ttmem.pytest_plugin", "-q"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *args, "test_it.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **env),
        timeout=PATIENCE_S * 2,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
