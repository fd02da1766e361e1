# SPDX-License-Identifier: Apache-2.0
"""`tt-mem run` on a program, in a runtime folder of its own, with a hook that any program bears."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from basics import PATIENCE_S, TT_MEM, wait_for
from commands import Result, assert_no_sanitizer_report, become, clean_env, run_json
from tracked import TRACKED_WORKER

RUN_WORKER = os.environ.get("RUN_WORKER", "run_worker")
HARMLESS_HOOK = os.environ.get("HARMLESS_HOOK", "")
HOOK_NAME = "libttmem-hook.so"

# A sanitized program minds a library before its sanitizer's own, and its forks.
WORKER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
    "TSAN_OPTIONS": "atexit_sleep_ms=20:die_after_fork=0",
}


class Place:
    """A copy of tt-mem beside the hook, and a runtime folder for its sockets."""

    def __init__(self, folder: Path, has_hook: bool = True):
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.tt_mem = shutil.copy(shutil.which(TT_MEM) or TT_MEM, self.bin / "tt-mem")
        self.hook = str(self.bin / HOOK_NAME)
        if has_hook:
            shutil.copy(HARMLESS_HOOK, self.hook)
        self.runtime = folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.work_folder = folder / "work"  # where recordings go
        self.work_folder.mkdir()
        self.work_folder.chmod(0o777)
        # With it nothing is a suspect, and all that remains is listed by size.
        self.no_suspects = folder / "no-suspects"
        self.no_suspects.write_text("leak:*\n")

    def env(self, **extra: str | None) -> dict[str, str]:
        machine = self.runtime.parent / "machine"  # one without cards, whatever this one has
        machine.mkdir(exist_ok=True)
        asan = os.environ.get("ASAN_OPTIONS", "")  # whose runtime minds what is loaded before it
        return clean_env(
            **{
                "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0".lstrip(":"),
                "XDG_RUNTIME_DIR": str(self.runtime),
                "TTMEM_ROOT": str(machine),
                "LD_PRELOAD": None,
                **extra,
            }
        )

    def start(self, *args: str, env: dict[str, str | None] | None = None, **options: Any) -> Run:
        return Run(self, *args, env=env, **options)

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        env: dict[str, str | None] | None = None,
        uid: int | None = None,
    ) -> Result:
        """`tt-mem run ARGS` to its end."""
        done = subprocess.run(
            [self.tt_mem, "run", *args],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env(**(env or {})),
            cwd=self.work_folder,
            timeout=2 * PATIENCE_S,
            check=False,
            preexec_fn=(lambda: become(uid)) if uid is not None else None,
        )
        result = Result(
            done.returncode,
            done.stdout.decode("utf-8", "surrogateescape"),
            done.stderr.decode("utf-8", "surrogateescape"),
        )
        assert_no_sanitizer_report(result.err, f"tt-mem run {' '.join(args)}")
        return result

    def work(self, *lines: str, last: str = "truth", args: tuple[str, ...] = ()) -> Result:
        """Runs a worker on these lines; the last one comes when the server knows of it."""
        with self.start(*args, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
            for line in lines:
                it.do(line)
            wait_for(lambda: it.knows(it.child()), "the worker to be known")
            it.send(last)
            return it.end()

    def sockets(self) -> list[str]:
        return sorted(str(path) for path in self.runtime.glob("*.sock"))


class Run:
    """A `tt-mem run` that goes on; lines are written to the program's input and read from it."""

    def __init__(
        self, place: Place, *args: str, env: dict[str, str | None] | None = None, **options: Any
    ):
        self._errors = open(place.runtime.parent / f"run-{id(self)}.err", "w+b")
        self.process = subprocess.Popen(
            [place.tt_mem, "run", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=place.env(**(env or {})),
            **{"cwd": place.work_folder, **options},
        )
        self.socket = str(place.runtime / f"tt-mem.run.{self.process.pid}.sock")

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline().decode()
        assert line, f"the program said nothing more: {self.errors()}"
        return line.strip()

    def do(self, line: str) -> str:
        self.send(line)
        return self.read()

    def child(self) -> int:
        """The program's process."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(wait_for(lambda: path.read_text().split(), "the program to start")[0])

    def knows(self, pid: int) -> bool:
        """Whether that process reports to it."""
        clients = run_json("status", env={"TTMEM_SOCKET": self.socket})["clients"]
        return any(client["pid"] == pid for client in clients)

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def end(self) -> Result:
        """Closes the program's input and waits; what it wrote since is in the result."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        out = self.process.stdout.read().decode()
        status = self.process.wait(PATIENCE_S)
        assert_no_sanitizer_report(self.errors(), "tt-mem run")
        return Result(status, out, self.errors())

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()


def rows_of(summary: str) -> dict[str, tuple[str, str]]:
    """What a summary says of each region of one device: what remains, and the peak."""
    pattern = r"^    ([A-Z][A-Z0-9_]+) +(0|[\d.]+ \w+) +([\d.]+ \w+)"
    return {name: (now, peak) for name, now, peak in re.findall(pattern, summary, re.M)}
