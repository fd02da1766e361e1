# SPDX-License-Identifier: Apache-2.0
"""Our own commands: run to their end, on a terminal, or read line by line as they go on."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from basics import PATIENCE_S, SANITIZER_WORDS, TT_MEM

if TYPE_CHECKING:
    from original import Original
    from servers import Server


def clean_env(**extra: str | None) -> dict[str, str]:
    """The environment of a command: ours without what would point it to another server."""
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("TTMEM_SOCKET", "NO_COLOR", "COLUMNS", "LINES", "NOTIFY_SOCKET", "LANG")
        and not k.startswith("LC_")
    }
    env["LC_ALL"] = "C.UTF-8"
    if "atexit_sleep_ms" not in env.get("TSAN_OPTIONS", ""):  # else every exit takes a second
        env["TSAN_OPTIONS"] = f"atexit_sleep_ms=20:{env.get('TSAN_OPTIONS', '')}".rstrip(":")
    for key, value in extra.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env


# A machine on which TT-Metal counts nothing, whatever else runs on this one meanwhile.
NO_RUNTIME = {"TTMEM_ROOT": "/nonexistent"}


def machine_of(args: tuple[Any, ...]) -> dict[str, str | None]:
    """What is known beside the server is left out, unless the test has a machine of its own."""
    return dict(NO_RUNTIME) if args and args[0] in ("monitor", "dump") else {}


def become(uid: int) -> None:
    """In a new process: be another user from here on."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def assert_no_sanitizer_report(text: str, who: str) -> None:
    for word in SANITIZER_WORDS:
        assert word not in text, f"{who} reported:\n{text}"


@dataclasses.dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def complains(self, status: int) -> str:
        """It failed with that status and one line that says why; returns the line."""
        assert self.status == status, self
        assert self.out == "", self
        assert self.err.count("\n") == 1 and self.err.startswith("tt-mem"), self
        return self.err.strip()


_reachable: str | None = None


def tt_mem_for_all() -> str:
    """The program's path, or that of a copy where other users cannot reach the original."""
    global _reachable
    if _reachable is None:
        path = Path(shutil.which(TT_MEM) or TT_MEM).resolve()
        if all(parent.stat().st_mode & 0o001 for parent in path.parents):
            _reachable = str(path)
        else:
            folder = tempfile.mkdtemp(prefix="ttm-bin-", dir="/tmp")
            os.chmod(folder, 0o755)
            _reachable = shutil.copy(path, folder)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _reachable


def run(
    *args: str | os.PathLike[str],
    server: Server | None = None,
    uid: int | None = None,
    env: dict[str, str | None] | None = None,
    stdout: Any = subprocess.PIPE,
    timeout_s: float = 2 * PATIENCE_S,
) -> Result:
    """Runs a command to its end. With 'server' it talks to that one."""
    chosen = {"TTMEM_SOCKET": server.socket} if server else {}
    full_env = clean_env(**{**machine_of(args), **chosen, **(env or {})})
    done = subprocess.run(
        [tt_mem_for_all() if uid is not None else TT_MEM, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=full_env,
        timeout=timeout_s,
        check=False,
        preexec_fn=(lambda: become(uid)) if uid is not None else None,
    )
    result = Result(
        done.returncode,
        (done.stdout or b"").decode("utf-8", "surrogateescape"),
        done.stderr.decode("utf-8", "surrogateescape"),
    )
    assert_no_sanitizer_report(result.err, f"tt-mem {' '.join(map(str, args))}")
    return result


def run_ok(*args: str | os.PathLike[str], **options: Any) -> Result:
    result = run(*args, **options)
    assert result.status == 0, result
    assert result.err == "", result
    return result


def run_json(*args: str | os.PathLike[str], **options: Any) -> Any:
    return run_ok(*args, "--json", **options).json


def run_on_terminal(
    *args: str, server: Server, env: dict[str, str | None] | None = None
) -> tuple[int, str]:
    """Runs a command whose stdout is a terminal; returns its status and what it wrote there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [TT_MEM, *args],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=clean_env(
            **{
                **machine_of(args),
                "TTMEM_SOCKET": server.socket,
                "TERM": "xterm",
                **(env or {}),
            }
        ),
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # EIO: the other side has closed
        while piece := os.read(ours, 65536):
            written += piece
    os.close(ours)
    return process.wait(PATIENCE_S), written.decode("utf-8")


class Command:
    """A command that goes on: its lines are read as they come."""

    def __init__(
        self,
        *args: str,
        server: Server,
        env: dict[str, str | None] | None = None,
        uid: int | None = None,
    ):
        self._buffer = b""
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [tt_mem_for_all() if uid is not None else TT_MEM, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(**{**machine_of(args), "TTMEM_SOCKET": server.socket, **(env or {})}),
            preexec_fn=(lambda: become(uid)) if uid is not None else None,
        )
        assert self.process.stdout
        self._fd = self.process.stdout.fileno()
        os.set_blocking(self._fd, False)

    def read_line(self, timeout_s: float = PATIENCE_S) -> str | None:
        """The next line, None when there is none in time, "" at the end."""
        until = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left_s = until - time.monotonic()
            if not select.select([self._fd], [], [], max(left_s, 0))[0]:
                return None
            piece = os.read(self._fd, 1 << 20)
            if not piece:
                rest, self._buffer = self._buffer, b""
                return rest.decode()
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode() + "\n"

    def read_until(self, condition: Callable[[str], bool]) -> list[str]:
        """Lines up to and with the first that is meant."""
        lines = []
        while True:
            line = self.read_line()
            assert line, f"no such line, and {self.errors()!r} after {''.join(lines[-20:])}"
            lines.append(line)
            if condition(line):
                return lines

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        status = self.process.wait(PATIENCE_S)
        assert_no_sanitizer_report(self.errors(), "a command")
        if self.process.stdout:
            self.process.stdout.close()
        return status

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.stop()


class Tail(Command):
    """`tt-mem tail`, used once its first line has come."""

    MARK = 0x7A11_0000

    def __init__(self, *args: str, server: Server, marker: Original, **options: Any):
        super().__init__("tail", *args, server=server, **options)
        self._marker = marker
        self._mark = self.MARK
        # It says nothing when it has subscribed, so events are made until it shows one.
        until = time.monotonic() + PATIENCE_S
        while True:
            self.make_mark()
            if self.read_line(0.02):
                break
            assert time.monotonic() < until and self.process.poll() is None, self.errors()
        self.lines_until_mark()

    def make_mark(self) -> str:
        """One allocation with an id of its own; returns how the id is written."""
        self._mark += 1
        self._marker.alloc(0, 1, self._mark)
        self._marker.free(0, self._mark)
        self._marker.sync()
        return f"0x{self._mark:x}"

    def lines_until_mark(self) -> list[str]:
        """All lines that are due, without those of marks."""
        mark = self.make_mark()
        shown = (mark, f'"id":{self._mark},')
        lines = self.read_until(
            lambda line: any(s in line for s in shown) and "free" in line.lower()
        )
        marks = range(self.MARK, self._mark + 1)
        ids = re.compile(r'0x[0-9a-f]+|(?<="id":)\d+')
        return [line for line in lines if not any(int(i, 0) in marks for i in ids.findall(line))]
