# SPDX-License-Identifier: Apache-2.0
"""Programs on libttmem that keep books of their own, to compare the server's with."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from basics import IS_SANITIZED, PATIENCE_S, wait_for
from commands import assert_no_sanitizer_report, become, clean_env, run_json
from native import Native, frame

if TYPE_CHECKING:
    from servers import Server

TRACKED_WORKER = os.environ.get("TRACKED_WORKER", "tracked_worker")
IS_THREAD_SANITIZED = IS_SANITIZED and b"__tsan_init" in Path(TRACKED_WORKER).read_bytes()
REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE", "CB", "KERNEL")

_reachable: Path | None = None


def tracked_worker_for_all() -> Path:
    """Its path, or that of a copy, with libttmem, where other users cannot reach the original."""
    global _reachable
    if _reachable is None:
        path = Path(TRACKED_WORKER).resolve()
        if all(parent.stat().st_mode & 0o001 for parent in path.parents):
            _reachable = path
        else:
            folder = tempfile.mkdtemp(prefix="ttm-worker-", dir="/tmp")
            os.chmod(folder, 0o755)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            _reachable = Path(shutil.copy(path, folder))
            shutil.copy(path.parent.parent.parent / "libttmem.so.0", folder)
    return _reachable


# (device, region): (count, bytes, footprint bytes); what holds nothing is left out
Truth = dict[tuple[int, str], tuple[int, int, int]]


class Tracked:
    """
    A tracked_worker. 'do' sends a line and waits until it is done; 'begin' does not wait, and
    'finish' does. What it holds by its own books is in 'truth' after each.

    A test has it fork when the server is exact, and so its helper thread at rest: unlike the C
    library's, the allocator of the address sanitizer may be copied while it is locked.
    """

    def __init__(
        self, server: Server, env: dict[str, str | None] | None = None, uid: int | None = None
    ):
        self._errors = tempfile.TemporaryFile()
        program = Path(TRACKED_WORKER) if uid is None else tracked_worker_for_all()
        full_env = {
            "TTMEM_SOCKET": server.socket,
            "TT_ALLOC_TRACKING_ENABLED": "1",
            # Children of a program with threads, which both would rather not have.
            "ASAN_OPTIONS": "detect_leaks=0",
            "TSAN_OPTIONS": "atexit_sleep_ms=20:die_after_fork=0",
            **(env or {}),
        }
        if program != Path(TRACKED_WORKER):
            full_env["LD_LIBRARY_PATH"] = str(program.parent)
        self.process = subprocess.Popen(
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(**full_env),
            preexec_fn=(lambda: become(uid)) if uid is not None else None,
        )
        self.truth: Truth = {}
        self.last: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def finish(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"the worker ended with {self.process.wait()}: {self.errors()}")
        self.last = json.loads(line)
        assert self.last["errno_changes"] == 0
        self.truth = {
            (device, REGIONS[region]): (count, size, footprint)
            for device, region, count, size, footprint in self.last["truth"]
        }
        return self.last

    def do(self, line: str) -> dict[str, Any]:
        self.begin(line)
        return self.finish()

    def threads(self) -> list[str]:
        """The names of its threads; ours is "tt-mem"."""
        paths = Path(f"/proc/{self.pid}/task").glob("*/comm")
        return [path.read_text().strip() for path in paths]

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def end(self, line: str | None = None) -> int:
        """Lets it end, by that line or by the end of its input; returns its status."""
        if line is not None:
            self.begin(line)
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        rest = self.process.stdout.read()
        status = self.process.wait(PATIENCE_S)
        assert rest == b"", rest
        assert self.errors() == ""
        return status

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        if not self._errors.closed:
            assert_no_sanitizer_report(self.errors(), "the worker")
            self._errors.close()  # a test may have thousands of workers, and 1024 files

    def __enter__(self) -> Tracked:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def row_of(server: Server, pid: int) -> dict[str, Any] | None:
    """What the dump says of a process, None when it says nothing."""
    for row in run_json("dump", "--pid", str(pid), server=server)["processes"]:
        if row["pid"] == pid:
            return row
    return None


def totals_in(row: dict[str, Any] | None) -> Truth:
    """The totals of a process as its row of a dump has them."""
    return {
        (device["id"], name): (
            region["remaining"],
            region["remaining_bytes"],
            region["remaining_footprint_bytes"],
        )
        for device in (row["devices"] if row else [])
        for name, region in device["regions"].items()
        if region["remaining"] > 0
    }


def sums_in(row: dict[str, Any] | None) -> Truth:
    """The same, added up from the single allocations."""
    sums: Truth = {}
    for buffer in row["buffers"] if row else []:
        for device in buffer["device_ids"]:
            key = (device, buffer["region"])
            count, size, footprint = sums.get(key, (0, 0, 0))
            sums[key] = (count + 1, size + buffer["bytes"], footprint + buffer["footprint_bytes"])
    return sums


def wait_until_exact(server: Server, worker: Tracked) -> float:
    """
    Asks until the server says of the worker what the worker says of itself; it must not change
    meanwhile. Then all that is told of it must fit. Returns how many seconds it took.
    """
    start = time.monotonic()
    wait_for(
        lambda: totals_in(row_of(server, worker.pid)) == worker.truth,
        f"{worker.pid} to be exact",
    )
    took_s = time.monotonic() - start
    row = row_of(server, worker.pid)
    assert totals_in(row) == sums_in(row) == worker.truth
    status = server.check()
    clients = [c for c in status["clients"] if c["pid"] == worker.pid]
    if not worker.truth and not clients:
        return took_s
    assert row
    (client,) = clients
    assert row["source"] == client["source"] == "tracked"
    assert client["lives"] == len(row["buffers"])
    assert client["unknown_frees"] == row["unknown_frees"] == status["unknown_frees"] == 0
    assert client["ambiguous_frees"] == client["refused"] == 0
    return took_s


def client_of(server: Server, pid: int) -> dict[str, Any] | None:
    """What the status says of a process, None when it says nothing."""
    for client in server.status()["clients"]:
        if client["pid"] == pid:
            return client
    return None


ATTACH, TOLD, TOLD_END, SWITCHED, TELL = 64, 65, 66, 67, 80
SEGMENT_MAGIC = 0x314745534D4D5454


def segment(contents: bytes = b"", size: int = 1 << 20, seals: int | None = None) -> int:
    """A memfd, sealed as the server wants it unless said otherwise."""
    fd = os.memfd_create("segment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    os.pwrite(fd, contents, 0)
    wanted = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW if seals is None else seals
    if wanted:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, wanted)
    return fd


def segment_header(
    rings: int = 4, slots: int = 64, used: int = 4, notes_bytes: int = 4096, **wrong: int
) -> bytes:
    """The header of a segment; 'wrong' gives fields other values."""
    fields = {
        "magic": SEGMENT_MAGIC,
        "version": 1,
        "header_bytes": 4096,
        "segment_bytes": 1 << 20,
        "ring_count": rings,
        "ring_slots": slots,
        "ring_stride": 128 + 64 * slots,
        "notes_offset": 4096 + rings * (128 + 64 * slots),
        "notes_bytes": notes_bytes,
        **wrong,
    }
    return struct.pack("<QIIQIIQQQ8xI", *fields.values(), used)


def attach(native: Native, *fds: int) -> None:
    """Sends the frame with these fds, and closes ours."""
    socket.send_fds(native.sock, [frame(ATTACH)], fds)
    for fd in fds:
        os.close(fd)


def told_row(serial: int, ident: int = 1, size: int = 1, devices: int = 0, region: int = 0) -> bytes:
    return struct.pack(
        "<QQQQQQIIHBBB3x", serial, ident, 64, size, size, 1, devices, 0, 0, region, 0, 0
    )


def told(epoch: int, *rows: bytes, count: int | None = None) -> bytes:
    head = struct.pack("<II", epoch, len(rows) if count is None else count)
    return frame(TOLD, head + b"".join(rows))
