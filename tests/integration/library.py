# SPDX-License-Identifier: Apache-2.0
"""Programs that call each function of ttmem.h as they are told, and behave badly."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Callable

import pytest
from basics import PATIENCE_S, wait_for
from commands import assert_no_sanitizer_report, clean_env
from tracked import client_of, row_of

if TYPE_CHECKING:
    from servers import Server

LIBRARY_WORKER = os.environ.get("LIBRARY_WORKER", "library_worker")


class Library:
    """A library_worker: 'do' sends a line and returns the number it answers with."""

    def __init__(
        self,
        server: Server,
        env: dict[str, str | None] | None = None,
        path: str = LIBRARY_WORKER,
        prepare: Callable[[], None] | None = None,
    ):
        self.server = server
        self._errors = tempfile.TemporaryFile()
        full_env = {
            "TTMEM_SOCKET": server.socket,
            "TT_ALLOC_TRACKING_ENABLED": "1",
            "ASAN_OPTIONS": "detect_leaks=0",
            "TSAN_OPTIONS": "atexit_sleep_ms=20:die_after_fork=0",
            **(env or {}),
        }
        self.process = subprocess.Popen(
            [path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(**full_env),
            preexec_fn=prepare,
        )
        if path == LIBRARY_WORKER:
            self.do("touched")  # it has loaded the library when it answers, and not used it

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode("utf-8", "surrogateescape") + b"\n")
        self.process.stdin.flush()

    def do(self, *lines: str) -> int:
        value = 0
        for line in lines:
            self.begin(line)
            assert self.process.stdout
            answer = self.process.stdout.readline().decode()
            if not answer.startswith("ok "):
                pytest.fail(f"{line!r}: {answer!r}, {self.process.wait()}: {self.errors()}")
            value = int(answer[3:])
        return value

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def threads(self) -> list[str]:
        names = []
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
        return names

    # What the server says of it.

    def row(self) -> dict[str, Any]:
        row = row_of(self.server, self.pid)
        assert row
        return row

    def client(self) -> dict[str, Any]:
        client = client_of(self.server, self.pid)
        assert client
        return client

    def region(self, name: str, device: int = 0) -> dict[str, Any]:
        for row in (row_of(self.server, self.pid) or {"devices": []})["devices"]:
            if row["id"] == device:
                return row["regions"][name]
        return {"remaining": 0}

    def ids(self) -> list[int]:
        row = row_of(self.server, self.pid)
        return sorted(buffer["id"] for buffer in row["buffers"]) if row else []

    def wait_for_ids(self, *ids: int) -> None:
        wait_for(lambda: self.ids() == sorted(ids), f"{ids} to be live, and not {self.ids()}")

    def end(self) -> int:
        """At the end of its input; nothing was printed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        rest = self.process.stdout.read()
        status = self.process.wait(PATIENCE_S)
        assert rest == b"" and self.errors() == ""
        return status

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        assert_no_sanitizer_report(self.errors(), "the worker")
