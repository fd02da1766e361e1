# SPDX-License-Identifier: Apache-2.0
"""Which source lines a reader of a recording gets: those of files that are the reader's own."""

import ctypes
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pages import data_of
from support import NOBODY, needs_root, run, run_ok

SECRET = "root:secret-of-line-28:19000::"
HINT = "source lines of files that are not yours are left out"
LONG_AGO = (1_600_000_000, 1_600_000_000)


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def story(name: str = "leak", **env: str) -> Path:
    file = Path(f"{name}.ttmem")
    subprocess.run(
        [os.environ["MAKE_STORY"], name, str(file)], check=True, env={**os.environ, **env}
    )
    return file


def write_source(path: str = "decode.py") -> Path:
    source = Path(path)
    lines = [f"line_{n}()" for n in range(1, 70)]
    lines[27] = SECRET
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(source, LONG_AGO)
    return source


def report_of(file: Path, *options: str, uid: int | None = None) -> str:
    return run_ok("report", str(file), *options, uid=uid).out


def page_of(file: Path, *options: str) -> tuple[Any, str]:
    done = run("export", str(file), "--format", "html", "-o", "out.html", *options)
    assert done.status == 0, done
    return data_of(Path("out.html")), done.err


def assert_shown(file: Path, *options: str) -> None:
    for more in ([], ["--all"], ["--by", "stack"]):
        assert SECRET in report_of(file, *more, *options)
        assert HINT not in report_of(file, *more, *options)
    page, err = page_of(file, *options)
    assert [frame[3] for frame in page["frames"] if frame[0] == "cache_kv (decode.py:28)"] == [
        SECRET
    ]
    assert HINT not in err


def assert_left_out(file: Path) -> None:
    for more in ([], ["--all"], ["--by", "stack"]):
        text = report_of(file, *more)
        assert "secret" not in text
        assert text.count(f"{HINT}; use --source") == 1
    page, err = page_of(file)
    assert "secret" not in Path("out.html").read_text(encoding="utf-8")
    assert all(len(frame) < 4 for frame in page["frames"])
    assert HINT in err and "--source" in err


def assert_nothing_there(file: Path, *options: str) -> None:
    """No line, and no word about it: --source would not help."""
    text = report_of(file, *options)
    assert "decode.py:28 cache_kv" in text and "secret" not in text and HINT not in text
    page, err = page_of(file, *options)
    assert all(len(frame) < 4 for frame in page["frames"]) and HINT not in err


class Openings:
    """Notes each open() of a file; one with O_PATH, which has no effects, is none."""

    IN_OPEN = 0x20

    def __init__(self, path: str):
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self._fd, os.fsencode(path), self.IN_OPEN) >= 0

    def any(self) -> bool:
        try:
            return os.read(self._fd, 4096) != b""
        except BlockingIOError:
            return False

    def __enter__(self) -> "Openings":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def test_lines_of_the_readers_own_program_are_shown() -> None:
    write_source()
    assert_shown(story())


@needs_root
def test_a_file_of_another_user_is_left_out_unless_asked_for() -> None:
    file = story()
    os.chown(write_source(), NOBODY, NOBODY)
    assert_left_out(file)
    assert_shown(file, "--source")


@needs_root
def test_a_root_only_file_that_another_users_program_names_is_left_out() -> None:
    write_source().chmod(0o600)
    file = story(STORY_UID_1=str(NOBODY))
    assert_left_out(file)
    assert_shown(file, "--source")


@needs_root
def test_a_claim_inside_a_recording_of_another_user_is_not_believed() -> None:
    """The recording says that root ran it. It is that user who says so."""
    write_source().chmod(0o600)
    file = story(STORY_UID_1="0")
    os.chown(file, NOBODY, NOBODY)
    assert_left_out(file)
    assert_shown(file, "--source")


@needs_root
def test_it_is_the_file_behind_a_link_that_counts() -> None:
    write_source("theirs.py")
    os.symlink("theirs.py", "decode.py")
    file = story()
    assert_shown(file)
    os.chown("theirs.py", NOBODY, NOBODY)  # the link stays root's
    assert_left_out(file)


@needs_root
def test_a_user_gets_the_lines_of_his_own_program(folder: Path) -> None:
    folder.chmod(0o755)
    file = story(STORY_UID_1=str(NOBODY))
    for path in (file, write_source()):
        os.chown(path, NOBODY, NOBODY)
    assert SECRET in report_of(file, uid=NOBODY)


def test_what_is_no_plain_file_is_neither_opened_nor_waited_for() -> None:
    file = story()
    os.mkfifo("decode.py")
    os.utime("decode.py", LONG_AGO)
    assert_nothing_there(file)
    assert_nothing_there(file, "--source")
    os.unlink("decode.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("decode.py")
        assert_nothing_there(file, "--source")
    os.unlink("decode.py")
    Path("decode.py").mkdir()
    assert_nothing_there(file, "--source")


@needs_root
def test_files_that_are_left_out_are_not_opened() -> None:
    """To open some files is to do something: a program waits for a reader, a watchdog starts."""
    file = story()
    os.chown(write_source(), NOBODY, NOBODY)
    with Openings("decode.py") as openings:
        assert_left_out(file)
        assert not openings.any()
        report_of(file, "--source")
        assert openings.any()
    os.unlink("decode.py")
    os.mkfifo("decode.py")
    os.utime("decode.py", LONG_AGO)
    with Openings("decode.py") as openings:
        assert_nothing_there(file, "--source")
        assert not openings.any()


def test_a_file_of_the_kernel_is_no_source() -> None:
    """It is a plain file of the caller's, and has secrets: the environment, memory."""
    os.symlink("/proc/self/environ", "decode.py")
    assert_nothing_there(story(), "--source")


def test_how_much_is_read_is_bounded() -> None:
    file = story()
    with open("decode.py", "w", encoding="utf-8") as source:
        source.write("\n" * 27 + SECRET + "x" * 100_000 + "\n")
    os.utime("decode.py", LONG_AGO)
    shown = [line for line in report_of(file, "--all").splitlines() if "secret" in line]
    assert shown and all(len(line) < 600 for line in shown)
    with open("decode.py", "a", encoding="utf-8") as source:
        source.truncate(1 << 30)  # a hole
    os.utime("decode.py", LONG_AGO)
    assert_nothing_there(file)


def test_a_nul_byte_does_not_shift_the_lines() -> None:
    Path("decode.py").write_bytes(b"a\0b\n" * 27 + SECRET.encode() + b"\n")
    os.utime("decode.py", LONG_AGO)
    assert SECRET in report_of(story())


@needs_root
def test_of_two_users_programs_only_the_callers_has_lines() -> None:
    write_source()
    file = story("two", STORY_UID_2=str(NOBODY))
    assert SECRET in report_of(file, "--pid", "4242", "--all")
    text = report_of(file, "--pid", "4243", "--all")
    assert "load_weights" in text and "line_" not in text and HINT in text
    for both, is_shown in (({}, True), ({"STORY_UID_1": str(NOBODY)}, False)):
        page, _ = page_of(story("two", STORY_UID_2=str(NOBODY), **both))
        shared = [frame[3:] for frame in page["frames"] if "load_weights" in frame[0]]
        assert shared == [["line_19()"] if is_shown else []]


@needs_root
def test_an_imported_log_says_nothing_of_its_user() -> None:
    """So nothing is known to be the caller's."""
    write_source()
    run_ok("export", str(story()), "--format", "debug-log", "-o", "log")
    run("import", "log", "-o", "imported.ttmem")
    text = report_of(Path("imported.ttmem"), "--all")
    assert "decode.py:28" in text and "secret" not in text
