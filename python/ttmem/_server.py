# SPDX-License-Identifier: Apache-2.0
"""The server that tracks this process; one of our own where there is none.

Our own is `tt-mem serve` on a socket in a private folder. It ends with this process, however that
ends: it watches a pipe that only this process and what it forks have open.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from typing import Any

from ttmem import _library
from ttmem._library import Inactive

START_S = 20.0
KNOWN_S = 10.0
RECORDED_S = 3.0

# Ends the server when its input does.
_WATCH = '"$@" </dev/null & server=$!; read -r _; kill "$server" 2>/dev/null; wait "$server"'

_lock = threading.Lock()
_own: _OwnServer | None = None
_is_recording = False


def _environment(**extra: str) -> dict[str, str]:
    """Of a command: it is not to be tracked itself."""
    left_out = ("LD_PRELOAD", "TT_ALLOC_TRACKING_ENABLED", "NOTIFY_SOCKET")
    env = {key: value for key, value in os.environ.items() if key not in left_out}
    return {**env, **extra}


class _OwnServer:
    def __init__(self) -> None:
        self.pid = os.getpid()  # a forked child is not its owner
        self.folder = tempfile.mkdtemp(prefix="ttmem-")
        self.socket = os.path.join(self.folder, "s.sock")
        self.recordings = ""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        ready = os.path.join(self.folder, "ready")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(ready)
            notify.settimeout(START_S)
            serve = [_library.command(), "serve", "--socket", self.socket, "--no-legacy"]
            if _is_recording:
                self.recordings = os.path.join(self.folder, "recordings")
                os.mkdir(self.recordings, 0o700)
                serve += ["--record", self.recordings]
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "sh", *serve],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(NOTIFY_SOCKET=ready),
                start_new_session=True,  # Ctrl-C is meant for the program
            )
            try:
                notify.recv(4096)
            except TimeoutError:
                raise Inactive(f"'{' '.join(serve)}' did not start") from None

    def stop(self) -> None:
        if os.getpid() != self.pid:
            return
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(START_S)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _found() -> str | None:
    """The server that libttmem finds, looked for where it looks."""
    chosen = os.environ.get("TTMEM_SOCKET")
    if chosen:
        return chosen
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    places = [f"{runtime}/tt-mem.sock"] if runtime.startswith("/") else []
    places += ["/run/tt-mem/tt-mem.sock", f"/tmp/tt-mem-{os.geteuid()}/tt-mem.sock"]
    return next((path for path in places if _answers(path)), None)


def _choose(path: str | None) -> None:
    """
    Has libttmem look for its server there; None: where everybody does. It reads the environment when
    tracking is switched on, and not at other times: a program may be about to change it.
    """
    if path is None:
        del os.environ["TTMEM_SOCKET"]
    else:
        os.environ["TTMEM_SOCKET"] = path
    library = _library.loaded()
    if library is not None and library.is_enabled():
        library.enable()


def _socket() -> str:
    global _own
    with _lock:
        path = _found()
        if path is not None:
            return path
        _own = _OwnServer()
        atexit.register(_own.stop)
        _choose(_own.socket)
        return _own.socket


def record_own() -> None:
    """A server that will be started here, if there is none, records."""
    global _is_recording
    _is_recording = True


def _has_mark(recording: str, mark: str) -> bool:
    report = _ask("report", "--json", recording)
    return any(row["name"] == mark for process in report["processes"] for row in process["marks"])


def copy_recording(mark: str, path: str) -> bool:
    """
    Copies what our own server has recorded, once it has that mark; it writes at least every second.
    Returns whether there was something to copy.
    """
    folder = _own.recordings if _own is not None else ""
    until = time.monotonic() + RECORDED_S
    try:
        while folder:
            names = sorted(os.listdir(folder))
            newest = os.path.join(folder, names[-1]) if names else ""
            if newest and (_has_mark(newest, mark) or time.monotonic() > until):
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                _run("export", "--format", "ttmem", "-o", path, newest)  # ended in good order
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
    except (Inactive, OSError):
        pass
    return False


def stop_own() -> None:
    """Ends the server that was started here, if one was."""
    global _own
    with _lock:
        if _own is None or _own.pid != os.getpid():
            return
        if os.environ.get("TTMEM_SOCKET") == _own.socket:
            _choose(None)
        atexit.unregister(_own.stop)
        _own.stop()
        _own = None


def _run(*args: str) -> bytes:
    done = subprocess.run(
        [_library.command(), *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=_environment(),
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Inactive(reason[-1] if reason else f"tt-mem {args[0]} ended with {done.returncode}")
    return done.stdout


def _ask(*args: str) -> Any:
    return json.loads(_run(*args))


# What libttmem says of a program that told it of allocations by hand, and of some it did not.
_MISSED = "it allocated while tracking was off: what is left of that is not known"


def _known(path: str, pid: int) -> dict[str, Any] | None:
    """What the server has of us once what it may have missed was told again; None before."""
    clients = _ask("status", "--json", "--socket", path)["clients"]
    for row in clients:
        if row["pid"] == pid and row["source"] == "tracked" and not row["catching_up"]:
            return dict(row)
    return None


def _is_lasting(known: dict[str, Any] | None) -> bool:
    """Whether no more will be known than is: what the program itself kept from us, or got wrong."""
    return (
        known is not None
        and known["trouble"] in ("", _MISSED)
        and not known["disabled"]
        and known["untracked"] == 0
    )


def row_of_this_process() -> dict[str, Any] | None:
    """
    What `tt-mem dump` has of this process, with all that was told before the question; None when
    nothing is live. Raises Inactive when there is no answer.
    """
    path, pid = _socket(), os.getpid()
    until = time.monotonic() + KNOWN_S
    known = None  # before the question: only then no row means that nothing is live
    while True:
        document = _ask("dump", "--json", "--all", "--pid", str(pid), "--socket", path)
        rows = [row for row in document["processes"] if row["pid"] == pid]
        if rows and (rows[0]["complete"] or _is_lasting(known)):
            return dict(rows[0])
        if not rows and known:
            return None
        known = _known(path, pid)
        if known and (not rows or _is_lasting(known)):
            continue
        if time.monotonic() > until:  # a server that was just started is found after 200 ms
            raise Inactive(
                rows[0]["why_incomplete"] if rows else f"the server at '{path}' does not know us"
            )
        time.sleep(0.02)
