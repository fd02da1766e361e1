# SPDX-License-Identifier: Apache-2.0
"""The hook as a guest: in programs of any kind, under `tt-mem run` and `tt-mem env`."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import PATIENCE_S, Result, TT_MEM, clean_env

METAL = os.environ.get("FAKE_METAL", "libtt_metal.so")


def run(folder: Path, *args: str, limit: tuple[int, int] | None = None, **env: str) -> Result:
    """`tt-mem run ARGS` to its end. 'limit' is how many files it may have open: soft, hard."""
    before = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)) if limit else None
    done = subprocess.run(
        [shutil.which(TT_MEM) or TT_MEM, "run", "--no-record", *args],
        capture_output=True,
        env=clean_env(
            **{"XDG_RUNTIME_DIR": str(folder), "LD_PRELOAD": None, "ASAN_OPTIONS": None, **env}
        ),
        cwd=folder,
        timeout=PATIENCE_S,
        encoding="utf-8",
        check=False,
        preexec_fn=before,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def reason(result: Result) -> str:
    """What the one line says behind how the program ended."""
    lines = [line for line in result.err.splitlines() if line.startswith("tt-mem: ")]
    assert len(lines) == 1, result
    return re.split(r" after [\d.]+ m?s; ", lines[0], maxsplit=1)[1]


# ---- why nothing was tracked ----

METAL_PROGRAM = """
import ctypes, os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
metal = ctypes.CDLL(sys.argv[1])
for step in sys.argv[2:]:
    name, number = step.split("=")
    print(getattr(metal, "fake_" + name)(int(number)), flush=True)
"""
NOTHING = "so nothing was tracked"


def run_metal(folder: Path, *steps: str, metal: str = METAL) -> Result:
    """A Python program that loads a TT-Metal and calls these of its functions."""
    return run(folder, sys.executable, "-c", METAL_PROGRAM, metal, *steps)


def test_without_tt_metal_that_is_said(folder: Path) -> None:
    result = run(folder, "true")
    assert result.err.startswith("tt-mem: true exited 0 after ")
    assert reason(result) == f"no TT-Metal library was loaded, {NOTHING}"


def test_a_program_that_loads_it_and_opens_no_device_is_said_to(folder: Path) -> None:
    result = run_metal(folder)
    assert (result.status, result.out) == (0, "")
    assert reason(result) == f"TT-Metal was loaded, but no device was opened, {NOTHING}"


def test_it_is_heard_of_in_a_child_of_a_script_too(folder: Path) -> None:
    script = f"{sys.executable} -c 'import ctypes; ctypes.CDLL(\"{METAL}\")'; exit 4"
    result = run(folder, "sh", "-c", script)
    assert result.status == 4
    assert reason(result) == f"TT-Metal was loaded, but no device was opened, {NOTHING}"


def test_a_device_that_cannot_be_opened_is_named_with_the_reason(folder: Path) -> None:
    result = run_metal(folder, "open_by_id=5")
    assert (result.status, result.out) == (0, "1\n")
    said = "TT-Metal: opening a device failed (there is no device 5)"
    assert reason(result) == f"{said}, {NOTHING}"


def test_a_machine_without_devices_is_named_by_what_tt_metal_says(folder: Path) -> None:
    result = run_metal(folder, "lose_devices=1", "open_by_id=0")
    assert (result.status, result.out) == (0, "0\n1\n")
    assert reason(result) == f"TT-Metal: finding devices failed (No chips here), {NOTHING}"


def test_the_last_attempt_is_the_one_that_is_named(folder: Path) -> None:
    result = run_metal(folder, "lose_devices=1", "open_by_id=0", "lose_devices=0", "open_by_id=7")
    assert "opening a device failed (there is no device 7)" in reason(result)


def test_a_program_that_aborts_as_nobody_catches_it_is_heard(folder: Path) -> None:
    result = run_metal(folder, "open_by_id_or_abort=5")
    assert result.status == 128 + signal.SIGABRT
    assert "terminate called" in result.err and "there is no device 5" in result.err
    assert " was killed by SIGABRT after " in result.err
    assert "opening a device failed (there is no device 5)" in reason(result)


def test_a_device_that_opens_in_the_end_is_tracked_and_the_failures_are_no_trouble(
    folder: Path,
) -> None:
    result = run_metal(folder, "open_by_id=5", "open_by_id=0", "open_by_id=6")
    assert (result.status, result.out) == (0, "1\n0\n1\n")
    assert "tracked on 1 device" in result.err and "failed" not in result.err


def test_a_program_that_switches_tracking_off_is_said_to(folder: Path) -> None:
    program = f"{sys.executable} -c '{METAL_PROGRAM}' {METAL} open_by_id=0"
    script = f"TT_ALLOC_TRACKING_ENABLED=0 {program}"
    result = run(folder, "sh", "-c", script)
    assert result.out == "0\n"
    assert reason(result) == f"TT-Metal: tracking was off, {NOTHING}"


# ---- its files ----

OPENS_A_FILE = """
import os
print(os.open("/dev/null", os.O_RDONLY))
"""


def test_the_first_file_of_a_program_is_3(folder: Path) -> None:
    assert run(folder, sys.executable, "-c", OPENS_A_FILE).out == "3\n"


def test_the_files_of_a_tracked_program_are_3_and_on(folder: Path) -> None:
    program = METAL_PROGRAM + OPENS_A_FILE + OPENS_A_FILE
    result = run(folder, sys.executable, "-c", program, METAL, "open_by_id=0")
    assert "tracked on 1 device" in result.err
    assert result.out == "0\n3\n4\n"


SHOWS_FILES = """
import os
folder = "/proc/self/fd"
files = [int(name) for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}")]
print(*(fd for fd in files if fd > 2))
"""


def files_of_tracked(folder: Path, limit: int) -> list[int]:
    program = METAL_PROGRAM + SHOWS_FILES
    args = [sys.executable, "-c", program, METAL, "open_by_id=0"]
    result = run(folder, *args, limit=(limit, 4096))
    assert "tracked on 1 device" in result.err, result
    return [int(word) for word in result.out.splitlines()[1].split()]


@pytest.mark.parametrize(
    ("limit", "lowest"), [(4096, 960), (1024, 960), (200, 136), (64, 32), (32, 16)]
)
def test_what_is_ours_has_high_numbers(folder: Path, limit: int, lowest: int) -> None:
    files = files_of_tracked(folder, limit)
    assert len(files) >= 6 and min(files) >= lowest, files


def test_a_program_that_may_open_few_files_has_all_of_them(folder: Path) -> None:
    result = run(folder, "sh", "-c", "exec 3</dev/null && echo ran", limit=(4, 4096))
    assert result.out == "ran\n"
    assert reason(result) == "not tracked: it may have 4 files open, tracking needs 32 (ulimit -n)"


def test_one_that_can_never_open_more_runs_untracked(folder: Path) -> None:
    result = run(folder, "sh", "-c", "exec 3</dev/null && echo ran; exit 6", limit=(4, 4))
    assert (result.status, result.out) == (6, "ran\n")
    (line,) = result.err.splitlines()
    assert line.endswith("Too many open files; running without tracking")


def test_where_no_file_can_be_open_a_program_that_is_not_there_is_named(folder: Path) -> None:
    result = run(folder, "./not-there", limit=(4, 4))
    assert result.status == 127
    assert "cannot run './not-there': No such file or directory" in result.err


# ---- sanitizers of others ----

SANITIZED = {
    "gcc-address": ["gcc", "-fsanitize=address"],
    "gcc-address-static": ["gcc", "-fsanitize=address", "-static-libasan"],
    "clang-address": ["clang", "-fsanitize=address"],
    "clang-address-shared": ["clang", "-fsanitize=address", "-shared-libasan"],
    "gcc-thread": ["gcc", "-fsanitize=thread"],
    "clang-thread": ["clang", "-fsanitize=thread"],
    "clang-memory": ["clang", "-fsanitize=memory"],
    "gcc-undefined": ["gcc", "-fsanitize=undefined"],
    "gcc-leak": ["gcc", "-fsanitize=leak"],
}
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char *bytes = malloc(10);
    if (argc > 1)
        bytes[10] = argv[1][0]; /* one too far */
    printf("%p\\n", (void *)bytes);
    free(bytes);
    return 0;
}
"""


def build(folder: Path, command: list[str]) -> Path:
    """A program that is built so, or a skip where it cannot be built or does not run alone."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    program = folder / "program"
    (folder / "program.c").write_text(SOURCE)
    folders = [f"-Wl,-rpath,{path}" for path in runtime_folders(command)]
    line = [*command, "-g", "program.c", "-o", str(program), *folders]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command)} does not build here")
    env = clean_env(LD_PRELOAD=None)
    alone = subprocess.run([program], env=env, capture_output=True, check=False)
    if alone.returncode != 0:
        pytest.skip(f"what {' '.join(command)} builds does not run here")
    return program


def runtime_folders(command: list[str]) -> list[str]:
    """Where clang has its shared runtimes, which the loader does not look into."""
    if command[0] != "clang":
        return []
    line = ["clang", "-print-file-name=libclang_rt.asan-x86_64.so"]
    found = Path(subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip())
    return [str(found.parent)] if found.is_absolute() else []


@pytest.mark.parametrize("kind", SANITIZED)
def test_a_program_that_was_built_with_a_sanitizer_runs(folder: Path, kind: str) -> None:
    result = run(folder, str(build(folder, SANITIZED[kind])))
    assert result.status == 0 and result.out.startswith("0x"), result
    assert reason(result) == f"no TT-Metal library was loaded, {NOTHING}"


@pytest.mark.parametrize("kind", ["gcc-address", "clang-address-shared"])
def test_its_sanitizer_still_finds_what_it_is_for(folder: Path, kind: str) -> None:
    result = run(folder, str(build(folder, SANITIZED[kind])), "x")
    assert result.status != 0 and "heap-buffer-overflow" in result.err


@pytest.mark.parametrize("kind", ["gcc-address", "clang-address-shared"])
def test_a_child_of_a_script_that_was_built_so_runs_too(folder: Path, kind: str) -> None:
    program = build(folder, SANITIZED[kind])
    result = run(folder, "sh", "-c", f"{program} && echo fine", ASAN_OPTIONS="detect_leaks=0")
    assert result.out.endswith("fine\n"), result


def test_one_who_wants_the_order_to_be_checked_keeps_that(folder: Path) -> None:
    wanted = "detect_leaks=0:verify_asan_link_order=1"
    result = run(folder, "sh", "-c", "echo $ASAN_OPTIONS", ASAN_OPTIONS=wanted)
    assert result.out == f"{wanted}\n"


def test_a_shell_with_our_environment_runs_them(folder: Path) -> None:
    program = build(folder, SANITIZED["gcc-address"])
    script = f'eval "$({shutil.which(TT_MEM) or TT_MEM} env)"; {program}'
    env = clean_env(XDG_RUNTIME_DIR=str(folder), LD_PRELOAD=None, ASAN_OPTIONS=None)
    line = ["sh", "-c", script]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("0x"), done
