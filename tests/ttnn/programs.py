# SPDX-License-Identifier: Apache-2.0
"""Programs with the real ttnn on mock devices, tracked by the hook; and the comparison."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import provision
import pytest
from basics import PATIENCE_S, wait_for
from clusters import N150, Cluster
from commands import clean_env
from tracked import row_of, sums_in, totals_in

if TYPE_CHECKING:
    from servers import Server

PYTHON = os.environ.get("TTNN_PYTHON", "")
HOOK = os.environ.get("TTMEM_HOOK", "libttmem-hook.so")
DRIVER = Path(__file__).with_name("driver.py")
BUFFER_REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE")

# (chip, region): (blocks, bytes taken)
Holdings = dict[tuple[int, str], tuple[int, int]]


def kernel_cache() -> Path:
    """Compiled kernels are kept: they are the same for every program and every test."""
    return provision.cache_folder() / f"kernels-{provision.RELEASE}-{provision.RECIPE}"


def environment(folder: Path, cluster: Cluster, **extra: str | None) -> dict[str, str]:
    """Of a program with ttnn on mock devices."""
    description = folder / "cluster.yaml"
    description.write_text(cluster.description())
    return clean_env(
        **{
            "HOME": str(folder),
            "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(description),
            "TT_METAL_CACHE": str(kernel_cache()),
            "TT_LOGGER_LEVEL": "fatal",
            "LOGURU_LEVEL": "ERROR",
            "PYTHONDONTWRITEBYTECODE": "1",
            **extra,
        }
    )


def hooked(server: Server, **extra: str | None) -> dict[str, str | None]:
    return {
        "LD_PRELOAD": HOOK,
        "TTMEM_SOCKET": server.socket,
        "TT_ALLOC_TRACKING_ENABLED": "1",
        **extra,
    }


class Failure(Exception):
    """What was raised in the program."""

    def __init__(self, kind: str, text: str, trace: str):
        super().__init__(trace)
        self.kind = kind
        self.text = text


class Program:
    """
    A Python with ttnn that does what it is told. 'do' sends it a piece of Python and waits until
    it is done; what it raises is raised here. 'holds' is what its allocators hold then.
    """

    def __init__(
        self,
        folder: Path,
        cluster: Cluster = N150,
        env: dict[str, str | None] | None = None,
        is_importing: bool = True,
        within: list[str] | None = None,
    ):
        """'within' is what starts it, in front of its own command."""
        self._folder = folder
        self._errors = tempfile.TemporaryFile()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            [*(within or []), PYTHON, str(DRIVER), str(theirs_in), str(theirs_out)],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            env=environment(folder, cluster, **(env or {})),
            cwd=folder,
            pass_fds=(theirs_in, theirs_out),
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._commands = os.fdopen(ours_out, "w", encoding="utf-8")
        self._answers = os.fdopen(ours_in, encoding="utf-8")
        self.holds: Holdings = {}
        if is_importing:
            self.do("import ttnn")

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, code: str) -> None:
        self._commands.write(json.dumps(textwrap.dedent(code)) + "\n")
        self._commands.flush()

    def finish(self) -> Any:
        line = self._answers.readline()
        if not line:
            pytest.fail(f"the program ended with {self.process.wait()}: {self.output()}")
        outcome = json.loads(line)
        self.holds = collect(outcome["holds"])
        if "failure" in outcome:
            raise Failure(outcome["failure"], outcome["text"], outcome["trace"])
        return outcome["value"]

    def do(self, code: str) -> Any:
        """Returns what the code left in 'result'."""
        self.begin(code)
        return self.finish()

    def output(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def end(self) -> int:
        """Lets it come to its end; returns its status."""
        self._commands.close()
        status = self.process.wait(PATIENCE_S)
        self._answers.close()
        return status

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self._commands, self._answers):
            if not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass


def collect(rows: list[list[Any]]) -> Holdings:
    """Meshes over the same chips add up: each has an allocator of its own."""
    sums: dict[tuple[int, str], tuple[int, int]] = collections.defaultdict(lambda: (0, 0))
    for chip, region, blocks, size in rows:
        count, total = sums[chip, region]
        sums[chip, region] = (count + blocks, total + size)
    return dict(sums)


def tracked_holds(row: dict[str, Any] | None) -> Holdings:
    """The same as the server has it, in the regions that allocators manage."""
    return {
        (chip, region): (count, footprint)
        for (chip, region), (count, _, footprint) in totals_in(row).items()
        if region in BUFFER_REGIONS
    }


def assert_exact(server: Server, program: Program) -> dict[str, Any] | None:
    """
    The server has exactly what the allocators of the program hold, once what is under way has
    arrived. Returns its row of the dump.
    """
    try:
        wait_for(lambda: tracked_holds(row_of(server, program.pid)) == program.holds, "exactness")
    except pytest.fail.Exception:
        assert tracked_holds(row_of(server, program.pid)) == program.holds
        raise
    row = row_of(server, program.pid)
    assert totals_in(row) == sums_in(row)
    status = server.check()
    for client in status["clients"]:
        if client["pid"] == program.pid:
            assert client["unknown_frees"] == client["ambiguous_frees"] == client["refused"] == 0
    assert status["unknown_frees"] == 0
    return row


def regions_of(row: dict[str, Any] | None, chip: int = 0) -> dict[str, dict[str, Any]]:
    for device in row["devices"] if row else []:
        if device["id"] == chip:
            return device["regions"]
    return {}
