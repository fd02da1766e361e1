# SPDX-License-Identifier: Apache-2.0
"""A terminal that shows what a person would see: tmux, on a socket of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from commands import clean_env

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")

FRAME_S = 0.05  # a part of a frame does not stay that long
RESTLESS_FRAMES = 20  # and a screen that changes all the time is taken as it is


class Screen:
    """A command in a shell on a terminal of that size. The shell says how it ended, and stays."""

    def __init__(
        self,
        folder: Path,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        env: dict[str, str | None] | None = None,
        term: str = "",
        stdin: str = "",
    ):
        self._socket = str(folder / "tmux")
        self._pid_path = folder / "top.pid"
        command = shlex.join([str(TT_MEM), *args]) + (f" <{stdin}" if stdin else "")
        become = f"TERM={term} " if term else ""
        script = (
            f"{become}sh -c 'echo $$ >{self._pid_path}; exec {command}'; "
            'echo "ended with $?"; stty -a; exec cat'
        )
        # The search for leaks may go round for ever where threads come and go while a program ends.
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        full_env = clean_env(**{"LC_ALL": "C.UTF-8", "ASAN_OPTIONS": sanitizer, **(env or {})})
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows)),
            *("sh", "-c", script),
            env=full_env,
        )
        self.pid = int(
            wait_for(
                lambda: self._pid_path.exists() and self._pid_path.read_text().strip(),
                "the command to start",
            )
        )

    def _tmux(self, *args: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *args],
            stdout=subprocess.PIPE,
            env=env,
            check=True,
            timeout=PATIENCE_S,
        )
        return done.stdout.decode()

    def text(self) -> str:
        return self._tmux("capture-pane", "-p")

    def coloured(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def keys(self, *keys: str) -> None:
        """As tmux names them: "a", "Enter", "Down"."""
        self._tmux("send-keys", *keys)

    def wait_for(self, *wanted: str) -> str:
        """What is on the screen once all of it is there."""
        return self.wait_until(lambda text: all(w in text for w in wanted), f"{wanted} on it")

    def wait_until(self, condition: Callable[[str], bool], what: str) -> str:
        """The first picture that is like that and stays for a moment: a frame comes in pieces."""
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self.text()
            if not condition(seen):
                return False
            for _ in range(RESTLESS_FRAMES):
                time.sleep(FRAME_S)
                before, seen = seen, self.text()
                if seen == before:
                    break
            return condition(seen)

        try:
            wait_for(look, what)
        except BaseException:
            print(seen)
            raise
        return seen

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def has_own_screen(self) -> bool:
        """Whether the terminal still shows the alternate screen."""
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def assert_usable(self, status: int) -> None:
        """The command has ended like that, and the terminal is as it was."""
        text = self.wait_for(f"ended with {status}", "icanon", "iexten")
        words = text.replace(";", " ").split()
        assert "icanon" in words and "echo" in words and "opost" in words, text
        assert not self.has_own_screen()

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(
            ["tmux", "-S", self._socket, "kill-server"],
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        )
        if os.path.exists(self._socket):
            os.unlink(self._socket)
