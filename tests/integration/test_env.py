# SPDX-License-Identifier: Apache-2.0
"""tt-mem env: what a shell takes over."""

import subprocess
from pathlib import Path

import pytest
from support import HOOK_NAME, PATIENCE_S, Place, Result, assert_no_sanitizer_report


def env_of(place: Place, *args: str, **env: str | None) -> Result:
    done = subprocess.run(
        [place.tt_mem, "env", *args],
        capture_output=True,
        env=place.env(**env),
        timeout=PATIENCE_S,
        encoding="utf-8",
        check=False,
    )
    assert_no_sanitizer_report(done.stderr, "tt-mem env")
    return Result(done.returncode, done.stdout, done.stderr)


# The loader would complain of what is not there, so the value is shown under another name.
SHOW = 'eval "$1"; exec /usr/bin/env -0 -u LD_PRELOAD "PRELOAD=$LD_PRELOAD"'


def taken_over(text: str) -> dict[str, str]:
    """The variables of a shell that has evaluated the text."""
    done = subprocess.run(
        ["/bin/sh", "-c", SHOW, "sh", text],
        capture_output=True,
        env={},
        encoding="utf-8",
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


def test_a_shell_takes_it_over(folder: Path) -> None:
    place = Place(folder)
    result = env_of(place)
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    assert result.out.startswith("export ")
    env = taken_over(result.out)
    assert env["PRELOAD"] == place.hook
    assert env["TT_ALLOC_TRACKING_ENABLED"] == "1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "verify_asan_link_order=0"),
        ("detect_leaks=0", "detect_leaks=0:verify_asan_link_order=0"),
        ("verify_asan_link_order=1", "verify_asan_link_order=1"),
        ("log_path='/tmp/my log'", "log_path='/tmp/my log':verify_asan_link_order=0"),
    ],
)
def test_programs_of_address_sanitizer_bear_a_library_before_its_own(
    folder: Path, before: str, after: str
) -> None:
    assert taken_over(env_of(Place(folder), ASAN_OPTIONS=before).out)["ASAN_OPTIONS"] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/lib/a.so", "{hook}:/lib/a.so"),
        ("/lib/a.so /lib/b.so", "{hook}:/lib/a.so /lib/b.so"),
        ("{hook}", "{hook}"),
        ("/lib/a.so:{hook}", "/lib/a.so:{hook}"),
        ("/lib/it's.so", "{hook}:/lib/it's.so"),
        ("/lib/$HOME`id`.so", "{hook}:/lib/$HOME`id`.so"),
        ("", "{hook}"),
    ],
)
def test_what_is_preloaded_already_stays(folder: Path, before: str, after: str) -> None:
    place = Place(folder)
    result = env_of(place, LD_PRELOAD=before.format(hook=place.hook))
    assert result.status == 0
    assert taken_over(result.out)["PRELOAD"] == after.format(hook=place.hook)


def test_taken_over_twice_it_is_the_same(folder: Path) -> None:
    place = Place(folder)
    once = env_of(place).out
    env = taken_over(once)
    again = env_of(place, LD_PRELOAD=env["PRELOAD"], ASAN_OPTIONS=env["ASAN_OPTIONS"])
    assert again.out == once


def test_it_is_found_in_the_library_folder_beside_the_programs(folder: Path) -> None:
    place = Place(folder, has_hook=False)
    assert HOOK_NAME in env_of(place).complains(1)
    found = [
        path
        for path in (folder / "lib", folder / "lib64", folder / "lib/x86_64-linux-gnu")
        if place_hook(path) and env_of(place).status == 0
    ]
    assert found, "the hook is looked for nowhere but beside tt-mem"
    assert taken_over(env_of(place).out)["PRELOAD"] == str(found[0] / HOOK_NAME)


def place_hook(folder: Path) -> bool:
    folder.mkdir(exist_ok=True)
    (folder / HOOK_NAME).touch()
    return True


def test_a_path_that_the_loader_would_cut_is_refused(folder: Path) -> None:
    inner = folder / "with space"
    inner.mkdir()
    assert "space" in env_of(Place(inner)).complains(1)


def test_a_word_too_many_is_told_in_one_line(folder: Path) -> None:
    assert "--help" in env_of(Place(folder), "now").complains(2)
