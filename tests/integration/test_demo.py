# SPDX-License-Identifier: Apache-2.0
"""tt-mem demo: the first thing a newcomer types."""

import glob
import os
import re
import shutil
import signal
import subprocess

import pytest
from support import (
    PATIENCE_S,
    TT_MEM,
    Server,
    assert_no_sanitizer_report,
    clean_env,
    run,
    run_json,
    run_ok,
    wait_for,
)


def find_decoders(demo: int) -> tuple[list[int], str] | None:
    """The processes that a demo has started, and the folder of its sockets."""
    with open(f"/proc/{demo}/task/{demo}/children", encoding="ascii") as file:
        pids = [int(pid) for pid in file.read().split()]
    if len(pids) < 2:
        return None
    with open(f"/proc/{pids[0]}/environ", encoding="utf-8") as file:
        folder = re.search(r"/tmp/tt-mem-demo-\w+", file.read())
    return (pids, folder[0]) if folder else None


def demos_of_others() -> set[str]:
    """Folders of demos that other tests have running at the same time."""
    folders = set()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                folders.update(re.findall(r"/tmp/tt-mem-demo-\w+", file.read()))
        except OSError:
            pass
    return folders


def test_it_names_the_leak() -> None:
    text = run_ok("demo", "--fast").out
    assert "\033" not in text
    assert re.search(r"device 0 +n300", text) and re.search(r"device 1 +n300", text)
    assert "Most Common Buffer Sizes" in text
    leak = re.search(r"pid (\d+), device 0, DRAM: buffers of 132 KiB grew from (\d+) to 40", text)
    assert leak, text
    assert re.search(rf"^ +{leak[1]} .*decoder-forgetful", text, re.M)  # it blames the one that did it
    assert "planted leak" in text
    assert "nothing remains" in text


def test_it_leaves_nothing_behind() -> None:
    before = set(glob.glob("/tmp/tt-mem-demo-*"))
    process = subprocess.Popen(
        [TT_MEM, "demo", "--fast"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(),
        text=True,
    )
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    assert_no_sanitizer_report(err, "demo")
    assert process.returncode == 0 and err == ""
    assert "planted leak" in out
    wait_for(lambda: set(glob.glob("/tmp/tt-mem-demo-*")) <= before | demos_of_others())


def test_several_at_once_do_not_meet() -> None:
    demos = [
        subprocess.Popen(
            [TT_MEM, "demo", "--fast"], stdout=subprocess.PIPE, env=clean_env(), text=True
        )
        for _ in range(3)
    ]
    for demo in demos:
        out, _ = demo.communicate(timeout=4 * PATIENCE_S)
        assert demo.returncode == 0 and "planted leak" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_tidies_up_when_it_is_interrupted(number: int) -> None:
    demo = subprocess.Popen(
        [TT_MEM, "demo"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_env()
    )
    decoders, folder = wait_for(lambda: find_decoders(demo.pid))
    # The thread sanitizer (gcc 12) can lose a signal that comes in the first call that waits.
    wait_for(lambda: len(run_json("status", "-s", f"{folder}/tt-mem.sock")["clients"]) == 2)
    demo.send_signal(number)
    _, err = demo.communicate(timeout=PATIENCE_S)
    assert err == b"" and demo.returncode == -number
    assert not os.path.exists(folder)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in decoders)


def test_its_decoders_end_when_it_is_killed() -> None:
    demo = subprocess.Popen(
        [TT_MEM, "demo"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_env(),
    )

    decoders, folder = wait_for(lambda: find_decoders(demo.pid))
    demo.send_signal(signal.SIGKILL)
    demo.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/fd/0") for pid in decoders))
    shutil.rmtree(folder)  # which a kill leaves behind


def test_a_reader_that_leaves_ends_it() -> None:
    demo = subprocess.Popen(
        [TT_MEM, "demo", "--fast"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(),
    )
    assert demo.stdout
    demo.stdout.close()
    demo.stdout = None
    _, err = demo.communicate(timeout=2 * PATIENCE_S)
    assert_no_sanitizer_report(err.decode(), "demo")


def test_its_buffers_fit_the_banks_that_it_tells_of(server: Server) -> None:
    decoder = subprocess.Popen(
        [TT_MEM, "demo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_env(TTMEM_SOCKET=server.socket, TTMEM_DEMO_ACT="0 1 1"),
    )
    assert decoder.stdin and decoder.stdout
    assert decoder.stdout.read(1) == b"\n"  # all tokens are done
    (process,) = server.dump("--all")["processes"]
    buffers = [b for b in process["buffers"] if b["region"] == "DRAM"]
    ends = [(b["address"], b["address"] + -(-b["bytes"] // 12)) for b in buffers]
    assert len(buffers) == 16 * 5 + 40
    assert max(end for _, end in ends) <= 1_072_693_184
    ends.sort()
    assert all(end <= begin for (_, end), (begin, _) in zip(ends, ends[1:], strict=False))
    decoder.communicate(b"\n\n\n\n", timeout=PATIENCE_S)


def test_wrong_options_are_told_in_one_line() -> None:
    assert "--help" in run("demo", "--nonsense").complains(2)
