# SPDX-License-Identifier: Apache-2.0
"""`tt-mem run` as the foreground job of a terminal, with the test in the place of the shell."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

from basics import PATIENCE_S, wait_for
from runs import Place

# The leader of the terminal's session. It starts the job in a group of its own, as a shell does,
# and tells on fd 3 what becomes of it; a line on fd 4 brings it to the foreground again.
SHELL = r"""
import json, os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.tcsetpgrp(0, os.getpgrp())
        os.write(3, json.dumps({"job": job, "stopped": os.WSTOPSIG(status)}).encode() + b"\n")
        os.read(4, 1)
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)
    else:
        os.tcsetpgrp(0, os.getpgrp())
        ended = os.waitstatus_to_exitcode(status)
        os.write(3, json.dumps({"job": job, "ended": ended}).encode() + b"\n")
        os.read(4, 1)
        break
"""


class Terminal:
    def __init__(
        self,
        place: Place,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        env: dict[str, str | None] | None = None,
    ):
        told_r, told_w = os.pipe()
        word_r, word_w = os.pipe()
        full_env = place.env(**{"TERM": "xterm", **(env or {})})
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.dup2(told_w, 200)
            os.dup2(word_r, 201)
            os.dup2(200, 3)
            os.dup2(201, 4)
            os.closerange(5, 4096)
            command = [sys.executable, "-S", "-c", SHELL, str(place.tt_mem), "run", *args]
            os.execve(sys.executable, command, full_env)
        os.close(told_w)
        os.close(word_r)
        self._told, self._word = told_r, word_w
        self._text = ""
        self._from = 0  # what comes before it was asked for already

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def read_until(self, wanted: str) -> str:
        """All that is on the screen so far, once 'wanted' has come since the last call."""
        start = self._from
        until = time.monotonic() + PATIENCE_S
        while wanted not in self._text[start:]:
            ready = select.select([self._fd], [], [], max(until - time.monotonic(), 0))[0]
            piece = b""
            with contextlib.suppress(OSError):  # EIO: all have closed it
                piece = os.read(self._fd, 65536) if ready else b""
            assert piece, f"no {wanted!r} on the screen: {self._text}"
            self._text += piece.decode("utf-8", "replace")
        self._from = self._text.index(wanted, start) + len(wanted)
        return self._text

    def _hear(self) -> dict[str, Any]:
        """What the shell tells next; the screen is read meanwhile, or its writers would wait."""
        line = b""
        while not line.endswith(b"\n"):
            ready = select.select([self._told, self._fd], [], [], PATIENCE_S)[0]
            assert ready, f"the shell does not tell: {self._text}"
            if self._told in ready:
                piece = os.read(self._told, 1)
                assert piece, f"the shell has ended: {self._text}"
                line += piece
            elif self._fd in ready:
                self._text += os.read(self._fd, 65536).decode("utf-8", "replace")
        return json.loads(line)

    def wait_for_stop(self) -> int:
        return self._hear()["stopped"]

    def to_foreground(self) -> None:
        os.write(self._word, b"x")

    def status(self) -> int:
        return self._hear()["ended"]

    def screen(self) -> str:
        """All that is on the screen, once the job has ended or stopped."""
        while select.select([self._fd], [], [], 0)[0]:
            self._text += os.read(self._fd, 65536).decode("utf-8", "replace")
        return self._text

    def child(self) -> int:
        """The program's process: the child of the child of the shell."""

        def children(pid: int) -> list[int]:
            return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

        job = wait_for(lambda: children(self.pid), "the job to start")[0]
        return wait_for(lambda: children(job), "the program to start")[0]

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._word)  # lets the shell end
        os.close(self._fd)  # hangs up on the rest
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._told)
