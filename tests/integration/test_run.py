# SPDX-License-Identifier: Apache-2.0
"""tt-mem run: the program is left alone, and summed up when it ends."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from support import (
    LIBRARY_WORKER,
    PATIENCE_S,
    RUN_WORKER,
    SmallDisk,
    TRACKED_WORKER,
    WORKER_OPTIONS,
    Place,
    Result,
    Run,
    Server,
    assert_no_sanitizer_report,
    needs_root,
    rows_of,
    run,
    run_json,
    wait_for,
)
from terminals import Terminal

PYTHON = sys.executable
MINUTES = 600  # longer than any test lasts
STRANGER = 60000 + os.getpid() % 5000  # a user that no other test is


@pytest.fixture
def place(folder: Path) -> Iterator[Place]:
    made = Place(folder)
    yield made
    assert not list(made.runtime.iterdir()), "a socket or lock was left behind"


def summary_of(result: Result) -> str:
    assert result.err.startswith("tt-mem: "), result
    return result.err


def only_line(result: Result) -> str:
    assert result.err.count("\n") == 1 and result.err.startswith("tt-mem: "), result
    return result.err.strip()


# ---- status and output ----


@pytest.mark.parametrize("status", [0, 1, 3, 77, 126, 255])
def test_it_exits_as_the_program_did(place: Place, status: int) -> None:
    result = place.run("sh", "-c", f"exit {status}")
    assert result.status == status
    assert f" exited {status} after " in only_line(result)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1])
def test_a_signal_that_ends_the_program_is_128_and_its_number(place: Place, number: int) -> None:
    result = place.run("sh", "-c", f"ulimit -c 0; kill -{number} $$")
    assert result.status == 128 + number
    assert f"killed by {signal.Signals(number).name}" in only_line(result)


def test_input_and_output_pass_through_byte_by_byte(place: Place) -> None:
    data = random.Random(5).randbytes(1 << 20)
    done = subprocess.run(
        [place.tt_mem, "run", "cat"], input=data, capture_output=True, env=place.env(), check=True
    )
    assert done.stdout == data
    assert done.stderr.startswith(b"tt-mem: cat exited 0 after ")


def test_what_the_program_writes_to_stderr_comes_first_and_is_whole(place: Place) -> None:
    result = place.run("sh", "-c", "printf 'no newline, \\001 binary' >&2")
    assert result.err.startswith("no newline, \x01 binarytt-mem: sh -c")


def test_a_program_without_tt_metal_is_one_line(place: Place) -> None:
    line = only_line(place.run("true"))
    assert line.endswith("; no TT-Metal library was loaded, so nothing was tracked")


def test_options_behind_the_program_are_the_programs(place: Place) -> None:
    script = "import sys; print(sys.argv[1:])"
    for dashes in ([], ["--"]):
        result = place.run(*dashes, PYTHON, "-c", script, "-h", "--json", "--", "-o")
        assert result.out == "['-h', '--json', '--', '-o']\n"


def test_a_program_whose_name_looks_like_an_option(place: Place, folder: Path) -> None:
    program = folder / "-o"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    result = place.run("--", "-o", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert result.out == "ran\n"


def test_without_stderr_it_still_runs_and_keeps_the_status(place: Place) -> None:
    line = f"{shlex.quote(str(place.tt_mem))} run sh -c 'echo out; exit 9' 2>&-"
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, env=place.env(), check=False)
    assert (done.returncode, done.stdout) == (9, b"out\n")


def test_the_numbers_of_streams_that_are_closed_stay_free(place: Place) -> None:
    """Else it would be files of ours that are read and written, by the program or by us."""
    env = dict(WORKER_OPTIONS)
    with place.start(TRACKED_WORKER, env=env, preexec_fn=lambda: os.close(2)) as it:
        it.do("alloc 0 0 5 1000")
        wait_for(lambda: knows(it.socket, it.child()))
        assert not os.path.lexists(f"/proc/{it.child()}/fd/2")
        assert os.readlink(f"/proc/{it.process.pid}/fd/2") == "/dev/null"
        assert it.end().status == 0


def test_a_reader_of_stderr_that_has_left_changes_nothing(place: Place) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [place.tt_mem, "run", "sh", "-c", "exit 9"], stderr=theirs, env=place.env(), check=False
    )
    os.close(theirs)
    assert done.returncode == 9


# ---- what is wrong ----


def test_a_program_that_is_not_there(place: Place) -> None:
    for name in ("no-such-program", "/no/such/program", ""):
        result = place.run(name)
        assert result.status == 127
        assert only_line(result) == f"tt-mem: cannot run '{name}': No such file or directory"


def test_a_program_that_cannot_be_run(place: Place, folder: Path) -> None:
    file = folder / "text"
    file.write_text("no program")
    for path in (file, folder):
        result = place.run(str(path))
        assert result.status == 126
        assert only_line(result) == f"tt-mem: cannot run '{path}': Permission denied"


def test_no_program_is_wrong_usage(place: Place) -> None:
    for args in ([], ["--"], ["--no-record"]):
        assert "the program to run is missing" in place.run(*args).complains(2)
    args = ["-o", "x.ttmem", "--no-record", "true"]
    assert "--output and --no-record exclude each other" in place.run(*args).complains(2)


@pytest.mark.parametrize("args", [["--no-stacks"], ["--python-frames", "0"]])
def test_holders_are_of_no_use_without_python_frames(place: Place, args: list[str]) -> None:
    assert "--holders needs Python frames" in place.run("--holders", *args, "true").complains(2)
    assert "--holders needs Python frames" in place.run(*args, "--holders", "true").complains(2)


@pytest.mark.parametrize(
    "args", [["--nonsense"], ["--python-frames", "x"], ["--native-frames=999"]]
)
def test_wrong_options_are_told_in_one_line(place: Place, args: list[str]) -> None:
    assert "--help" in place.run(*args, "true").complains(2)


def test_without_the_hook_it_says_so_and_runs_the_program(folder: Path) -> None:
    place = Place(folder, has_hook=False)
    result = place.run("sh", "-c", "echo ran; exit 4")
    assert (result.status, result.out) == (4, "ran\n")
    assert result.err.splitlines()[0].startswith("tt-mem: cannot find libttmem-hook.so")


def test_a_strange_runtime_folder_is_gone_around(place: Place, folder: Path) -> None:
    file = folder / "file"
    file.touch()
    for strange in ("relative", "/no/such/folder", str(file), "/" + "x" * 200, ""):
        result = place.run(
            "sh", "-c", 'echo "$TTMEM_SOCKET"', env={"XDG_RUNTIME_DIR": strange, "TMPDIR": strange}
        )
        assert result.status == 0
        assert re.fullmatch(r"/\S+/tt-mem\.run\.\d+\.sock\n", result.out)
        assert only_line(result)


@needs_root
def test_where_no_socket_can_be_had_the_program_runs_untracked(place: Place, folder: Path) -> None:
    theirs = Path(f"/tmp/tt-mem-{STRANGER}")  # made by root, so not that user's
    theirs.mkdir(mode=0o755)
    try:
        result = place.run(
            "sh",
            "-c",
            'echo "${TTMEM_SOCKET-none} ${LD_PRELOAD-none}"; exit 6',
            env={"XDG_RUNTIME_DIR": None},
            uid=STRANGER,
        )
    finally:
        theirs.rmdir()
    assert (result.status, result.out) == (6, "none none\n")
    (line,) = result.err.splitlines()
    assert "Permission denied" in line and line.endswith("running without tracking")


def test_a_static_program_is_named_as_one(place: Place) -> None:
    static = "/sbin/ldconfig"
    if shutil.which("readelf") is None or not Path(static).exists():
        pytest.skip("needs readelf and a program without a loader")
    segments = subprocess.run(["readelf", "-l", static], capture_output=True, text=True).stdout
    if "INTERP" in segments:
        pytest.skip(f"{static} is not linked statically here")
    result = place.run(static, "--version")
    assert result.status == 0
    assert only_line(result).endswith("not tracked: it is linked statically")


@needs_root
def test_a_program_that_runs_as_another_user_is_named_as_one(place: Place, folder: Path) -> None:
    program = folder / "privileged"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    os.chmod(place.runtime, 0o777 | 0o1000)
    result = place.run(str(program), uid=STRANGER, env={"XDG_RUNTIME_DIR": str(place.runtime)})
    assert result.status == 0
    assert result.err.splitlines()[-1].endswith("not tracked: it runs as another user")


# ---- what the program gets ----

LOOK_AROUND = r"""
import json, os, resource, signal
status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
print(json.dumps({
    "env": dict(os.environ),
    "limits": [resource.getrlimit(i) for i in range(16)],
    "signals": [status[key] for key in ("SigBlk", "SigIgn", "SigCgt")],
    "fds": [fd for fd in range(256) if os.path.exists(f"/proc/self/fd/{fd}")],
    "umask": os.umask(0), "cwd": os.getcwd(), "group": os.getpgrp(), "nice": os.nice(0),
}))
"""

OURS = ("LD_PRELOAD", "TT_ALLOC_TRACKING_ENABLED", "TTMEM_SOCKET")


def look_around(command: list[str], env: dict[str, str], prepare: Any = None) -> dict[str, Any]:
    done = subprocess.run(
        [*command, PYTHON, "-S", "-c", LOOK_AROUND],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        check=True,
        preexec_fn=prepare,
    )
    return json.loads(done.stdout)


def ignore_some() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGVTALRM])


@pytest.mark.parametrize("prepare", [None, ignore_some])
def test_the_program_gets_all_as_it_would_without(place: Place, prepare: Any) -> None:
    env = place.env(ONE="1", EMPTY="", TTMEM_SOCKET="/elsewhere")
    plain = look_around([], env, prepare)
    tracked = look_around([str(place.tt_mem), "run"], env, prepare)
    added = {name: tracked["env"].pop(name) for name in OURS}
    plain["env"].pop("TTMEM_SOCKET")
    assert tracked == plain
    assert added["LD_PRELOAD"] == place.hook
    assert added["TT_ALLOC_TRACKING_ENABLED"] == "1"
    assert added["TTMEM_SOCKET"].startswith(f"{place.runtime}/tt-mem.run.")


def test_the_hook_is_loaded_beside_what_was_preloaded(place: Place, folder: Path) -> None:
    other = str(shutil.copy(place.hook, folder / "other.so"))
    show = 'echo "$LD_PRELOAD"; cat /proc/self/maps'
    result = place.run("sh", "-c", show, env={"LD_PRELOAD": other})
    first, maps = result.out.split("\n", 1)
    assert first == f"{place.hook}:{other}"
    assert place.hook in maps and other in maps


def test_frames_are_handed_on(place: Place) -> None:
    show = ["sh", "-c", 'echo "${TTMEM_PYTHON_FRAMES-} ${TTMEM_NATIVE_FRAMES-}"']
    assert place.run(*show).out == " \n"
    assert place.run("--python-frames", "8", "--native-frames=24", *show).out == "8 24\n"
    assert place.run("--no-stacks", "--no-record", *show).out == "0 0\n"


def test_a_program_that_closes_all_files_is_unharmed(place: Place) -> None:
    result = place.run(PYTHON, "-c", "import os; os.closerange(0, 4096); os._exit(5)")
    assert result.status == 5


@needs_root
def test_a_program_that_becomes_another_user_is_unharmed(place: Place) -> None:
    script = f"import os; os.setgid({STRANGER}); os.setuid({STRANGER}); os.execlp('id', 'id', '-u')"
    result = place.run(PYTHON, "-c", script)
    assert (result.status, result.out) == (0, f"{STRANGER}\n")


# ---- signals ----

COUNT_SIGNALS = r"""
import signal, sys
wanted = signal.Signals(int(sys.argv[1])) if int(sys.argv[1]) < 32 else int(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, [wanted, signal.SIGALRM])
print("ready", flush=True)
count = 0
sys.stdin.readline()
while wanted in signal.sigpending():
    signal.sigwait([wanted])
    count += 1
sys.exit(40 + count)
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGWINCH,
        signal.SIGRTMIN + 3,
    ],
)
def test_signals_that_somebody_sends_are_passed_on(place: Place, number: int) -> None:
    with place.start(PYTHON, "-c", COUNT_SIGNALS, str(int(number))) as it:
        assert it.read() == "ready"
        child = it.child()
        it.process.send_signal(number)
        wait_for(lambda: is_pending(child, number), "the signal to reach the program")
        it.send("count")
        assert it.end().status == 41


def is_pending(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return any(
        int(bits, 16) >> (number - 1) & 1
        for bits in re.findall(r"^(?:ShdPnd|SigPnd):\t(\w+)", status, re.M)
    )


def test_it_survives_what_the_program_does_not(place: Place) -> None:
    with place.start("sh", "-c", f"echo ready; exec sleep {MINUTES}") as it:
        it.read()
        it.process.send_signal(signal.SIGTERM)
        result = it.end()
    assert result.status == 128 + signal.SIGTERM
    assert "killed by SIGTERM" in only_line(result)


@pytest.mark.parametrize(("key", "number"), [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_a_key_on_the_terminal_reaches_the_program_once(
    place: Place, key: str, number: int
) -> None:
    with Terminal(place, PYTHON, "-c", COUNT_SIGNALS, str(int(number))) as terminal:
        terminal.read_until("ready")
        child = terminal.child()
        terminal.type(key)
        wait_for(lambda: is_pending(child, number), "the signal to reach the program")
        terminal.type("count\n")
        terminal.read_until("tt-mem: ")
        assert terminal.status() == 41


def test_it_stops_and_continues_with_the_program(place: Place) -> None:
    with Terminal(place, "sh", "-c", "echo ready; read x; echo got $x; exit 8") as terminal:
        terminal.read_until("ready")
        terminal.type("\x1a")
        assert terminal.wait_for_stop() == signal.SIGTSTP
        child = terminal.child()
        assert state_of(child) == "T"
        terminal.to_foreground()
        wait_for(lambda: state_of(child) != "T", "the program to continue")
        terminal.type("back\n")
        terminal.read_until("got back")
        terminal.read_until("exit 8")
        assert terminal.status() == 8


def test_who_stops_the_program_alone_does_not_stop_us(place: Place) -> None:
    with place.start("sh", "-c", "echo ready; read x; exit 8") as it:
        it.read()
        child = it.child()
        os.kill(child, signal.SIGSTOP)
        wait_for(lambda: state_of(child) == "T", "the program to stand")
        run("status", env={"TTMEM_SOCKET": it.socket})  # it answers, so it does not stand
        os.kill(child, signal.SIGCONT)
        assert it.end().status == 8


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


# ---- what is tracked ----


def test_the_summary_has_what_the_program_did(place: Place) -> None:
    result = place.work("alloc 0 0 100 1000000", "alloc 0 1 7 64", "free 90", last="return 3")
    assert result.status == 3
    text = summary_of(result)
    assert "exit 3" in text
    assert "tracked on 1 device · 107 allocations, 90 frees, nothing lost" in text
    assert "17 allocations remain" in text
    assert rows_of(text)["DRAM"][1] == "95.5 MiB"  # 100 of a million bytes, in pages of 2 KiB
    assert len(text.splitlines()) <= 24


def test_nothing_remains_is_one_line(place: Place) -> None:
    text = summary_of(place.work("alloc 0 0 10 1000", "free 10"))
    assert "10 allocations, 10 frees" in text
    assert "nothing remains" in text and "remain," not in text
    assert rows_of(text)["DRAM"] == ("0", "20.0 KiB")


def test_a_mesh_is_one_block_and_counts_once(place: Place) -> None:
    calm = ("--suppressions", str(place.no_suspects))
    text = summary_of(place.work("mesh 5 1000000", args=calm))
    assert "tracked on 8 devices · 5 allocations, 0 frees" in text
    assert re.search(r"devices 0-7 each", text)
    assert re.search(r"^ +\d .* L1 +0-7 each$", text, re.M)


@pytest.mark.parametrize("end", ["segv", "_exit 0", "quick_exit 4", "exit 5"])
def test_however_it_ends_all_that_it_did_is_told(place: Place, end: str) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 2 0 1 4096")
        wait_for(lambda: it.knows(it.child()))
        it.send(f"alloc 2 0 999 4096\nfree 100\n{end}")  # and nobody waits for us to hear it
        text = summary_of(it.end())
    assert "1,000 allocations, 100 frees, nothing lost" in text
    assert "900 allocations remain" in text


def test_killed_in_mid_run_it_shows_what_remained(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 1 1 300 4096")
        wait_for(lambda: it.knows(it.child()))
        it.do("free 44")
        os.kill(it.child(), signal.SIGKILL)
        result = it.end()
    assert result.status == 137
    text = summary_of(result)
    assert "killed by SIGKILL" in text
    assert "300 allocations, 44 frees" in text and "256 allocations remain" in text


# Starts a worker for each argument, with its lines separated by commas, writes their numbers, and
# ends when it is told.
LAUNCH = r"""
import json, subprocess, sys
workers = []
for lines in sys.argv[2:]:
    pipe = subprocess.PIPE
    worker = subprocess.Popen([sys.argv[1]], stdin=pipe, stdout=pipe, text=True)
    for line in lines.split(","):
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        worker.stdout.readline()
    workers.append(worker)
print(json.dumps([worker.pid for worker in workers]), flush=True)
sys.stdin.readline()
for worker in workers:
    worker.communicate()
sys.exit(2)
"""


def test_what_the_device_took_with_it_remained_and_is_named(place: Place) -> None:
    with place.start(RUN_WORKER, env=dict(WORKER_OPTIONS)) as it:
        assert it.read() == "allocated"
        wait_for(lambda: it.knows(it.child()))
        assert (it.do("fail"), it.do("close")) == ("failed", "closed")
        text = summary_of(it.end())
    assert "87 allocations, 1 free, nothing lost" in text
    assert "83 allocations remain, 47.5 MiB" in text
    assert re.search(r"device 0 +n150 wormhole_b0", text)
    assert rows_of(text)["L1"] == ("39.5 MiB", "40.0 MiB")
    assert re.search(r"^ +79 +512 KiB +39\.5 MiB  L1 +0$", text, re.M)
    assert re.search(r"^ +3 +2\.0 MiB +6\.0 MiB  DRAM +0 +in model_init$", text, re.M)
    assert re.search(r'^ +1 .*  DRAM +0 +"layer_0_weights" in model_init$', text, re.M)
    assert "besides 3 circular buffers and kernels of cached programs, 12.0 KiB" in text


def test_an_allocation_that_fails_is_told_at_once(place: Place) -> None:
    with place.start(RUN_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.read()
        wait_for(lambda: it.knows(it.child()))
        it.do("fail")
        wait_for(lambda: "who holds L1" in it.errors(), "the failure to be told")
        lines = it.errors().splitlines()
        it.do("close")
        it.end()
    assert lines[:3] == [
        "tt-mem: out of memory in L1 of device 0",
        "  32.0 MiB wanted, 512 KiB in each of 64 banks",
        "  free 640 KiB a bank, largest block 320 KiB → fragmented, not exhausted",
    ]
    assert re.fullmatch(r"  who holds L1 +40\.0 MiB +80 buffers +from where is not known", lines[3])


def test_children_are_tracked_too(place: Place) -> None:
    lines = ["alloc 0 0 5 1000", "alloc 1 0 6 1000,free 6", "alloc 0 1 7 1000", "alloc 3 0 4 10"]
    with place.start(PYTHON, "-c", LAUNCH, TRACKED_WORKER, *lines, env=dict(WORKER_OPTIONS)) as it:
        pids = json.loads(it.read())
        wait_for(lambda: all(it.knows(pid) for pid in pids), "all to be known")
        it.send("go")
        result = it.end()
    assert result.status == 2
    text = summary_of(result)
    assert "tracked on 3 devices · 22 allocations, 6 frees" in text
    assert "16 allocations remain" in text
    assert "4 processes" in text
    rows = re.findall(r"^ +(\d+)  tracked_worker +(\d+) +(\d+) +(\d+) ", text, re.M)
    # More than fit: those that left most come first.
    assert rows == [(str(pids[2]), "7", "0", "7"), (str(pids[0]), "5", "0", "5")]
    assert re.search(r"^ +… 2 more$", text, re.M)


def test_circular_buffers_that_were_never_seen_alive_count_as_they_lay_in_the_cores(
    place: Place,
) -> None:
    """Two programs share the addresses; of a closed device none is held."""
    with place.start(LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("open 0 n150")
        wait_for(lambda: it.knows(it.child()), "the program to be known")
        it.process.send_signal(signal.SIGSTOP)  # and the server with it
        it.do("cb 8 0 0 65536 3 3")
        it.do("cb 8 1 65536 65536 3 3")
        it.do("cb 9 0 0 65536 3 3")
        it.do("close 0")
        it.process.send_signal(signal.SIGCONT)
        text = summary_of(it.end())
    row = re.search(r"^    CB +(\S+) +(\S+ MiB) ", text, re.M)
    assert row and row.groups() == ("0", "2.0 MiB")  # of the larger one, in 16 cores


def test_circular_buffers_go_with_a_process_that_is_killed(place: Place) -> None:
    """As its report has it."""
    with place.start("-o", "x.ttmem", LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("open 0 n150")
        it.do("cb 8 0 0 65536 3 3")
        wait_for(lambda: it.knows(it.child()), "the program to be known")
        os.kill(it.child(), signal.SIGKILL)
        text = summary_of(it.end())
    row = re.compile(r"^    CB +(\S+) +(\S+ MiB) ", re.M)
    assert row.findall(text) == [("0", "1.0 MiB")], text
    report = run("report", str(place.work_folder / "x.ttmem")).out
    assert row.findall(report) == [("0", "1.0 MiB")], report


WHILE_OFF = "it allocated while tracking was off: what is left of that is not known"


def has_heard_of_switch(socket: str, is_on: bool) -> bool:
    (client,) = run_json("status", env={"TTMEM_SOCKET": socket})["clients"]
    return client["resyncs"] > 0 and not client["catching_up"] if is_on else client["disabled"]


def story_of(place: Place, *lines: str) -> tuple[str, dict[str, Any], str]:
    """What the summary says of a program that does this, and what the report."""
    with place.start("-o", "x.ttmem", LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 1 100")
        wait_for(lambda: it.knows(it.child()), "the program to be known")
        for line in lines:
            it.do(line)
        if "disable" in lines:
            wait_for(lambda: has_heard_of_switch(it.socket, "enable" in lines), "the switch")
        text = summary_of(it.end())
    path = str(place.work_folder / "x.ttmem")
    (process,) = run_json("report", path)["processes"]
    return text, process, run("report", path).out


def test_what_was_allocated_while_tracking_was_off_is_not_called_exact(place: Place) -> None:
    lines = ("alloc 2 100", "disable", "alloc 3 100", "free 1", "enable", "alloc 4 100", "free 4")
    text, process, report = story_of(place, *lines)
    assert "3 allocations, 1 free, not all was heard" in text and WHILE_OFF in text
    assert "nothing remains, as far as was heard" in text
    assert process["complete"] is process["history_complete"] is False
    assert process["why_incomplete"] == WHILE_OFF and process["unknown_frees"] == 0
    assert f"not exact: {WHILE_OFF}" in report and "nothing lost" not in report
    assert "nothing remains, as far as was heard" in report


def test_a_break_while_nothing_was_held_costs_the_history_alone(place: Place) -> None:
    text, process, report = story_of(
        place, "free 1", "disable", "enable", "alloc 2 100", "free 2"
    )
    assert "its history has a gap: what remains is exact" in text
    assert process["complete"] is True and process["history_complete"] is False
    assert process["why_incomplete"] == "it was not listened to from its start without a break"
    for words in (text, report):
        assert "not all was heard" in words and "all that was allocated" not in words


def test_a_program_that_ends_with_tracking_off_is_not_exact(place: Place) -> None:
    text, process, _ = story_of(place, "free 1", "disable", "alloc 2 100")
    assert "tracking was off in the end: nothing below is exact" in text
    assert process["complete"] is process["history_complete"] is False
    assert process["why_incomplete"] == "tracking was off when it ended"


def test_what_a_program_got_wrong_is_in_summary_and_report(place: Place) -> None:
    text, process, report = story_of(place, "alloc 2 0", "free 1", "free 1", "fill_notes")
    assert "nothing below is exact · 1 refused, as it makes no sense" in text
    assert "1 free of something unknown" in text and "names and contexts without room" in text
    assert process["complete"] is process["history_complete"] is False
    found = {finding["kind"]: finding["count"] for finding in process["findings"]}
    assert (found["unknown_free"], found["refused"]) == (1, 1) and process["unknown_frees"] == 1
    assert found["notes_left_out"] > 0
    assert "later names, contexts and stacks are missing" in report


def test_a_forked_child_is_a_process_of_its_own(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 1 7 1000")
        wait_for(lambda: it.knows(it.child()))  # its thread holds no lock that fork would copy
        child = json.loads(it.do("fork 3 10"))["child"]
        wait_for(lambda: it.knows(child), "the child to be known")
        it.do("reap")
        text = summary_of(it.end())
    assert "tracked on 2 devices · 17 allocations, 5 frees" in text
    assert "12 allocations remain" in text and "2 processes" in text
    assert re.search(rf"^ +{child}  tracked_worker +10 +5 +5 ", text, re.M)


LEAVE_A_DAEMON = r"""
import os, subprocess, sys
worker, fifo, out = sys.argv[1:]
daemon = subprocess.Popen([worker], stdin=open(fifo), stdout=open(out, "w"),
                          stderr=subprocess.DEVNULL, start_new_session=True)
print(daemon.pid, flush=True)
sys.stdin.readline()
os._exit(6)
"""


def test_what_outlives_the_program_is_named_and_not_waited_for(place: Place, folder: Path) -> None:
    fifo, out = folder / "fifo", folder / "out"
    os.mkfifo(fifo)
    args = [PYTHON, "-c", LEAVE_A_DAEMON, TRACKED_WORKER, str(fifo), str(out)]
    with place.start(*args, env=dict(WORKER_OPTIONS)) as it, open(fifo, "w") as to:
        daemon = int(it.read())
        to.write("alloc 0 0 12 1000\n")
        to.flush()
        wait_for(lambda: knows(it.socket, daemon), "the daemon to be known")
        it.send("go")
        result = it.end()
        assert result.status == 6
        assert f"still running, and tracked no longer: {daemon} tracked_worker" in result.err
        assert "12 allocations remain" in result.err
        to.write("alloc 0 0 1 1000\n")  # it goes on as before
        to.flush()
        wait_for(lambda: out.read_text().count("\n") == 2, "the daemon to go on")
    wait_for(lambda: not Path(f"/proc/{daemon}").exists() or state_of(daemon) == "Z")


def knows(socket: str, pid: int) -> bool:
    """Whether the server there has something of that process."""
    dump = run("dump", "--json", env={"TTMEM_SOCKET": socket}).json
    return any(row["pid"] == pid and row["buffers"] for row in dump["processes"])


def test_live_commands_find_it(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 3 0 5 1000")
        wait_for(lambda: knows(it.socket, it.child()))
        found = run("dump", "--json", env={"XDG_RUNTIME_DIR": str(place.runtime)})
        if found.status == 2:  # another server runs on this machine
            assert it.socket in found.err
        else:
            assert [row["pid"] for row in found.json["processes"]] == [it.child()]
        assert it.end().status == 0


def test_two_at_once_do_not_meet(place: Place) -> None:
    with (
        place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as one,
        place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as two,
    ):
        one.do("alloc 0 0 1 1000")
        two.do("alloc 0 0 2 1000")
        assert place.sockets() == sorted([one.socket, two.socket])
        for it in (one, two):
            wait_for(lambda: knows(it.socket, it.child()))
            dump = run("dump", "--json", env={"TTMEM_SOCKET": it.socket}).json
            assert [row["pid"] for row in dump["processes"]] == [it.child()]
        several = run("status", env={"XDG_RUNTIME_DIR": str(place.runtime)})
        assert several.status == 2
        assert one.socket in several.err and two.socket in several.err
        assert "1 allocation remains" in one.end().err
        assert "2 allocations remain" in two.end().err


def test_inside_each_other_the_inner_one_has_its_own(place: Place) -> None:
    inner = [str(place.tt_mem), "run", TRACKED_WORKER]
    with place.start(*inner, env=dict(WORKER_OPTIONS)) as it:
        worker = json.loads(it.do("alloc 0 0 3 1000"))["pid"]
        (own,) = [path for path in place.sockets() if path != it.socket]
        wait_for(lambda: knows(own, worker))
        assert not it.knows(worker)
        result = it.end()
    assert result.status == 0
    first, last = result.err.split("tt-mem: tt-mem run", 1)
    assert "3 allocations remain" in first
    assert last.endswith("; no TT-Metal library was loaded, so nothing was tracked\n")


def test_the_program_goes_on_when_we_are_killed(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 3 1000")
        child = it.child()
        wait_for(lambda: knows(it.socket, child))
        it.process.kill()
        it.process.wait()
        assert json.loads(it.do("alloc 0 0 4 1000"))["truth"][0][2] == 7
        assert it.process.stdin
        it.process.stdin.close()
        wait_for(lambda: not Path(f"/proc/{child}").exists() or state_of(child) == "Z")
        assert Path(it.socket).exists()
    place.run("true")  # tidies up what the killed one left
    assert not Path(it.socket).exists()


def test_the_original_socket_is_not_touched(place: Place) -> None:
    seen = "/proc/net/unix"
    result = place.run("sh", "-c", f"cat {seen}")
    ours = [line.split()[-1] for line in result.out.splitlines() if str(place.runtime) in line]
    assert [Path(path).name.split(".")[1] for path in ours] == ["run"]


# ---- on a terminal ----


def test_colours_are_for_terminals_that_want_them(place: Place) -> None:
    for env, has_colour in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with Terminal(place, "true", env=env) as terminal:
            text = terminal.read_until("TT-Metal")
            assert ("\033[" in text) == has_colour
            assert terminal.status() == 0
    assert "\033" not in place.run("true").err


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (60, 24)])
def test_it_fits_the_screen(place: Place, columns: int, rows: int) -> None:
    lines = ",".join(
        [
            *(f"alloc {i} {i % 5} {10 + i} {1000 * (i + 1)}" for i in range(8)),
            *(f"mesh {i + 1} {3000 * (i + 1)}" for i in range(9)),
        ]
    )
    args = [PYTHON, "-c", LAUNCH, TRACKED_WORKER, *[lines] * 4]
    env = {**WORKER_OPTIONS, "NO_COLOR": "1"}
    with Terminal(place, *args, columns=columns, rows=rows, env=env) as terminal:
        pids = json.loads(re.search(r"\[[\d, ]+\]", terminal.read_until("]"))[0])
        (socket,) = place.sockets()
        wait_for(lambda: all(knows(socket, pid) for pid in pids), "all to be known")
        terminal.type("go\n")
        assert terminal.status() == 2
        text = terminal.screen()
    shown = text[text.index("tt-mem: ") :].splitlines()
    assert len(shown) > rows / 2
    assert len(shown) < rows  # a line is left for the prompt
    assert max(map(len, shown)) <= columns


def limited(place: Place, blocks: int, *args: str) -> subprocess.CompletedProcess:
    """`tt-mem run ARGS` that may write files of so many blocks."""
    script = f'ulimit -f {blocks}; exec "$0" run "$@"'
    return subprocess.run(
        ["sh", "-c", script, str(place.tt_mem), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=place.env(**WORKER_OPTIONS),
        cwd=place.work_folder,
        check=False,
    )


@pytest.mark.parametrize("blocks", [1, 3, 500000])
def test_a_limit_of_file_sizes_is_what_is_named(place: Place, blocks: int) -> None:
    result = limited(place, blocks, TRACKED_WORKER)
    assert result.returncode == 0
    assert "(ulimit -f)" in result.stderr


def test_a_program_over_its_limit_of_file_sizes_ends_as_without_us(place: Place) -> None:
    result = limited(place, 1, "sh", "-c", "head -c 100000 /dev/zero >file")
    assert result.returncode == 128 + signal.SIGXFSZ


# ---- a server that runs already ----


def test_with_connect_the_server_hears_of_it(place: Place, server: Server) -> None:
    args = ["--connect", server.socket, TRACKED_WORKER]
    with place.start(*args, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 5 1000000")
        wait_for(lambda: knows(server.socket, it.child()))
        assert place.sockets() == []  # none of its own
        result = it.end()
    assert result.status == 0
    assert server.socket in result.err
    assert "5 allocations remained" in result.err


def test_with_connect_what_a_closed_device_ended_remains_too(place: Place, server: Server) -> None:
    args = ["--connect", server.socket, TRACKED_WORKER]
    with place.start(*args, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 0", "alloc 0 0 5 2048", "free 1", "close 0", "alloc 1 0 2 2048"):
            it.do(line)
        wait_for(lambda: knows(server.socket, it.child()))
        text = summary_of(it.end())
    assert "6 allocations remained" in text


def test_with_connect_parts_of_cached_programs_do_not_remain(place: Place, server: Server) -> None:
    for close in ([], ["close 0"]):
        args = ["--connect", server.socket, LIBRARY_WORKER]
        with place.start(*args, env=dict(WORKER_OPTIONS)) as it:
            lines = ["open 0 n150", "alloc 1 1000", "cb 7 1 4096 2048 1 1", "kernel 7 2 64 0"]
            for line in [*lines, "free 1"]:
                it.do(line)
            wait_for(lambda: knows(server.socket, it.child()))
            for line in close:
                it.do(line)
            text = summary_of(it.end())
        assert "nothing remained" in text, text


def test_with_connect_what_remained_is_as_requested(place: Place, server: Server) -> None:
    with place.start("--connect", server.socket, LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 1 3000 0 0 12")
        wait_for(lambda: knows(server.socket, it.child()))
        text = summary_of(it.end())
    assert "1 allocation remained, 2.9 KiB requested" in text, text


def has_broken_off(server: Server, is_on: bool) -> bool:
    """Whether the server knows that it was off, and whether it is on now."""
    (client,) = server.status()["clients"]
    (process,) = server.dump()["processes"]
    is_exact = process["why_incomplete"] and not client["catching_up"]
    return bool(is_exact) and client["disabled"] is not is_on


def told_with_connect(place: Place, server: Server, *lines: str) -> str:
    with place.start("--connect", server.socket, LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 1 100")
        wait_for(lambda: knows(server.socket, it.child()))
        for line in lines:
            it.do(line)
        if "disable" in lines:
            wait_for(lambda: has_broken_off(server, "enable" in lines), "the switch")
        return summary_of(it.end())


def test_with_connect_what_was_missed_is_said_as_without(place: Place, server: Server) -> None:
    text = told_with_connect(place, server, "free 1")
    assert ", nothing lost, by the server at " in text and "\n  nothing remained\n" in text
    lines = ("alloc 2 100", "disable", "alloc 3 100", "free 1", "enable", "alloc 4 100", "free 4")
    text = told_with_connect(place, server, *lines)
    assert ", not all was heard, by the server at " in text and f"\n  {WHILE_OFF}\n" in text
    assert "nothing remained, as far as was heard" in text
    text = told_with_connect(place, server, "free 1", "disable", "enable", "alloc 2 100", "free 2")
    assert "its history has a gap: what remains is exact" in text
    assert "not all was heard" in text and "\n  nothing remained\n" in text
    text = told_with_connect(place, server, "free 1", "disable", "alloc 2 100")
    assert "tracking was off in the end: nothing below is exact" in text


def test_with_connect_what_went_wrong_at_the_very_end_is_said(place: Place, server: Server) -> None:
    """No look at the totals comes between it and the end of the program."""
    text = told_with_connect(place, server, "alloc 2 0", "free 1", "free 1", "fill_notes")
    assert "nothing below is exact · 1 refused, as it makes no sense" in text, text
    assert "1 free of something unknown" in text and "names and contexts without room" in text


def test_with_connect_others_are_left_out(place: Place, server: Server) -> None:
    with (
        place.start("--connect", server.socket, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as one,
        place.start("--connect", server.socket, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as two,
    ):
        one.do("alloc 0 0 5 1000")
        two.do("alloc 1 0 6 1000")
        wait_for(lambda: knows(server.socket, one.child()) and knows(server.socket, two.child()))
        first = one.end()
        assert "5 allocations remained" in first.err and "6 alloc" not in first.err
        assert "6 allocations remained" in two.end().err


def test_with_connect_and_no_server_the_program_is_not_started(place: Place, folder: Path) -> None:
    marker = folder / "started"
    result = place.run("--connect", str(folder / "none.sock"), "touch", str(marker))
    assert "none is running there" in result.complains(1)
    assert not marker.exists()


def test_with_connect_nothing_is_recorded_which_is_said(place: Place, server: Server) -> None:
    wanted = place.work_folder / "wanted.ttmem"
    result = place.run("--connect", server.socket, "-o", str(wanted), "sh", "-c", "exit 3")
    first, last = result.err.splitlines()
    assert result.status == 3 and not wanted.exists()
    assert f"'{wanted}' is not written" in first and "no TT-Metal device was opened" in last


def test_with_connect_leaks_cannot_be_looked_for(place: Place, server: Server) -> None:
    marker = place.work_folder / "started"
    result = place.run("--connect", server.socket, "--fail-on-leak", "touch", str(marker))
    assert "--fail-on-leak does not go with --connect" in result.complains(2)
    for option in ("--after-mark", "mark"), ("--warmup", "1"):
        result = place.run("--connect", server.socket, *option, "touch", str(marker))
        assert f"{option[0]} does not go with --connect" in result.complains(2)
    assert not marker.exists()


def test_a_server_that_ends_under_us_harms_nobody(place: Place, server: Server) -> None:
    with place.start("--connect", server.socket, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 5 1000")
        wait_for(lambda: knows(server.socket, it.child()))
        server.kill()
        it.do("free 5")
        result = it.end()
    assert result.status == 0
    assert "the server has gone" in result.err
    assert_no_sanitizer_report(result.err, "tt-mem run")
    for path in (server.socket, server.legacy):  # which a kill leaves behind
        os.unlink(path)


# ---- recordings ----


def recordings(place: Place) -> list[str]:
    return sorted(path.name for path in place.work_folder.iterdir())


def test_a_run_is_recorded_under_the_number_of_its_process(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 3 1000")
        pid = it.child()
        wait_for(lambda: it.knows(pid), "the worker to be known")
        it.send("truth")
        result = it.end()
    assert recordings(place) == [f"tt-mem.{pid}.ttmem"]
    assert f"recorded in tt-mem.{pid}.ttmem (" in result.err
    assert " tt-mem report\n" in result.err


def test_a_recording_elsewhere_is_shown_from_there(place: Place, folder: Path) -> None:
    wanted = folder / "elsewhere.ttmem"
    result = place.work("alloc 0 0 3 1000", args=("-o", str(wanted)))
    assert wanted.exists() and f" tt-mem report {wanted}\n" in result.err


def test_a_recording_takes_the_place_of_an_older_one(place: Place) -> None:
    older = place.work_folder / "x.ttmem"
    assert place.run("-o", "x.ttmem", "true").status == 0
    before = older.read_bytes()
    with place.start("-o", "x.ttmem", TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 3 1000")
        wait_for(lambda: it.knows(it.child()), "the worker to be known")
        assert older.read_bytes() == before
        it.send("truth")
        result = it.end()
    assert recordings(place) == ["x.ttmem"]
    assert len(older.read_bytes()) > len(before) and "recorded in x.ttmem (" in result.err


def test_a_file_that_is_no_recording_stays_and_nothing_is_run(place: Place) -> None:
    notes = place.work_folder / "notes.txt"
    notes.write_text("precious " * 10)
    result = place.run("-o", "notes.txt", "touch", "was-run")
    assert "'notes.txt': the file is there and is no recording" in result.complains(2)
    assert notes.read_text() == "precious " * 10
    assert not (place.work_folder / "was-run").exists()
    notes.write_text("")  # as of mktemp
    assert place.run("-o", "notes.txt", "true").status == 0
    assert notes.read_bytes()[:3] == b"TTM"


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("-", "a recording cannot be written to standard output"),
        ("/dev/null", "cannot record to '/dev/null': it is no regular file"),
        (".", "cannot record to '.': it is no regular file"),
    ],
)
def test_what_cannot_become_a_recording_is_refused_before_the_program_runs(
    place: Place, output: str, why: str
) -> None:
    assert why in place.run("-o", output, "touch", "was-run").complains(2)
    assert os.listdir(place.work_folder) == []


def test_a_program_that_reports_nothing_leaves_no_recording(place: Place) -> None:
    assert place.run("true").status == 0
    assert recordings(place) == []


def test_no_recording_is_made_when_none_is_wanted(place: Place) -> None:
    with place.start("--no-record", TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 3 1000")
        wait_for(lambda: it.knows(it.child()), "the worker to be known")
        it.send("truth")
        result = it.end()
    assert recordings(place) == [] and "recorded in" not in result.err


def test_a_recording_that_cannot_be_written_is_told_and_the_program_runs(place: Place) -> None:
    result = place.run("-o", "no/such/folder/x.ttmem", "sh", "-c", "echo hello; exit 5")
    assert result.status == 5 and result.out == "hello\n"
    first, _ = result.err.splitlines()
    assert first == (
        "tt-mem: cannot record to 'no/such/folder/x.ttmem': No such file or directory, "
        "there will be no recording"
    )


# ---- closed devices ----


def test_what_was_held_when_the_device_was_closed_remains(place: Place) -> None:
    calm = ("--suppressions", str(place.no_suspects))
    with place.start(*calm, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 0", "within 1", "alloc 0 0 3 100000", "within 2", "alloc 0 0 4 200000"):
            it.do(line)
        it.do("free 1")
        it.do("close 0")
        wait_for(lambda: it.knows(it.child()))
        live = run("dump", "--json", env={"TTMEM_SOCKET": it.socket}).json["processes"]
        text = summary_of(it.end())
    # What is allocated now is what is live, and that is nothing.
    assert [row["buffers"] for row in live] == [[]]
    assert live[0]["devices"][0]["regions"]["DRAM"]["remaining"] == 0
    assert "6 allocations remain" in text
    assert "all held until the device was closed" in text
    rows = re.findall(r"^ +(\d) +([\d.]+ KiB) +([\d.]+ KiB)  DRAM +0 +(in part_\d)$", text, re.M)
    assert rows == [
        ("4", "195 KiB", "784 KiB", "in part_2"),
        ("2", "97.7 KiB", "196 KiB", "in part_1"),
    ]
    assert rows_of(text)["DRAM"][0] == "980 KiB"


def test_a_device_that_is_opened_again_keeps_both_stories(place: Place) -> None:
    text = summary_of(
        place.work("open 0", "alloc 0 0 2 2048", "close 0", "open 0", "alloc 0 0 3 2048", "free 1")
    )
    assert "5 allocations, 1 free" in text
    assert "4 allocations remain" in text and "2 until the device was closed" in text


def test_a_mesh_that_lost_a_device_remains_once_and_on_each(place: Place) -> None:
    text = summary_of(place.work("mesh 5 1000000", "close 3"))
    assert "5 allocations remain" in text and "all held until the device was closed" in text
    assert re.search(r"^  devices 0-7 each +remains", text, re.M)
    assert rows_of(text)["L1"][0] == "4.8 MiB"


def test_what_other_threads_had_allocated_remains_when_one_closes_the_device(place: Place) -> None:
    """The close lies in another ring than the births, and may be read before them."""
    text = summary_of(place.work("open 1", "threads 200 50", "close 1"))
    assert "400 allocations, 200 frees" in text
    assert "200 allocations remain" in text and "all held until the device was closed" in text


# ---- leaks ----


def forget(it: Run) -> None:
    """The program forgets a buffer at each of many steps."""
    it.do("alloc 0 0 1 4096")
    wait_for(lambda: it.knows(it.child()), "the worker to be known")
    it.do("free 1")
    for _ in range(30):
        it.do("alloc 0 0 1 4096")
        it.do("alloc 0 1 4 2048")
        it.do("free 4")


def leak(place: Place, *args: str) -> Result:
    with place.start(*args, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        forget(it)
        it.send("truth")
        return it.end()


def fill_the_disk(it: Run) -> None:
    """To tt-mem, and to it alone: more than its files may have."""
    room = 8192  # what it says at the end goes to a file too
    resource.prlimit(it.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    it.do("storm 2 20000 7")


def test_leaks_over_the_limit_decide_the_exit_status(place: Place) -> None:
    result = leak(place, "--fail-on-leak")
    assert result.status == 3
    assert "1 suspect: " in result.err and "leaks found: suspects take" in result.err
    assert leak(place, "--fail-on-leak=1000000000").status == 0


def leak_around_a_mark(place: Place, *args: str, leaks_after: bool, status: int = 0) -> Result:
    """The program leaks in each step until it sets "mark_1", and behind it if that is wanted."""
    with place.start(*args, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        forget(it)
        it.do("mark 1")
        for _ in range(30 if leaks_after else 0):
            it.do("alloc 0 0 1 8192")
            it.do("alloc 0 1 4 2048")
            it.do("free 4")
        it.send(f"exit {status}")
        return it.end()


@pytest.mark.parametrize("record", [("-o", "x.ttmem"), ("--no-record",)])
def test_what_leaked_before_a_mark_does_not_count_and_what_leaks_after_it_does(
    place: Place, record: tuple[str, ...]
) -> None:
    args = (*record, "--fail-on-leak")
    assert leak_around_a_mark(place, *args, leaks_after=False).status == 3
    result = leak_around_a_mark(place, *args, "--after-mark", "mark_1", leaks_after=False)
    assert result.status == 0 and "no leaks over the limit: suspects take 0 B" in result.err
    result = leak_around_a_mark(place, *args, "--after-mark", "mark_1", leaks_after=True)
    assert result.status == 3 and "leaks found: suspects take" in result.err


def test_a_leak_check_that_checked_nothing_has_failed_and_says_why(place: Place) -> None:
    never = "leaks were not looked for: the mark 'mark_2' was never set"
    args = ("--after-mark", "mark_2")
    result = leak_around_a_mark(place, "--fail-on-leak", *args, leaks_after=True)
    assert result.status == 1 and result.err.count(never) == 1
    result = leak_around_a_mark(place, "--fail-on-leak", *args, leaks_after=True, status=7)
    assert result.status == 7 and never in result.err  # it may have failed before the mark
    result = leak_around_a_mark(place, *args, leaks_after=True)
    assert result.status == 0 and never in result.err
    result = leak(place, "--fail-on-leak", "--warmup", "3600")
    assert result.status == 1
    assert "leaks were not looked for: the program ended in its warm-up of 1 h" in result.err
    assert place.run("--fail-on-leak", "--after-mark", "x", "true").status == 1


def test_a_warm_up_that_is_over_at_once_changes_nothing(place: Place) -> None:
    assert leak(place, "--fail-on-leak", "--warmup", "0").status == 3


@pytest.mark.parametrize("rows", [24, 32])
def test_a_low_screen_has_the_evidence_and_the_advice(place: Place, rows: int) -> None:
    args = ("--fail-on-leak", TRACKED_WORKER)
    env = {**WORKER_OPTIONS, "NO_COLOR": "1"}
    with Terminal(place, *args, rows=rows, env=env) as terminal:
        terminal.type("alloc 0 0 1 4096\n")
        wait_for(lambda: place.sockets() and knows(place.sockets()[0], terminal.child()))
        terminal.type("free 1\n")
        for _ in range(30):
            terminal.type("alloc 0 0 1 4096\nalloc 0 1 4 2048\nfree 4\n")
        terminal.type("return 0\n")
        assert terminal.status() == 3
        text = terminal.screen()
    shown = text[text.index("tt-mem: ") :].splitlines()
    assert len(shown) < rows  # a line is left for the prompt
    words = " ".join(" ".join(shown).split())
    assert "1 suspect: " in words
    assert re.search(r"leaks found: suspects take .* the limit is 0 B, 4.0 KiB unsure$", words)
    assert "were never freed, born over" in words
    assert "look for an exception or an early return before the free" in words


def test_suspects_of_several_processes_are_summed_up_and_the_one_below_is_named(place: Place) -> None:
    lines = "alloc 0 0 1 4096\nalloc 0 1 4 2048\nfree 4\n"
    for name, steps in ("less", 30), ("more", 40):
        (place.work_folder / name).write_text(lines * steps)
    command = f"{TRACKED_WORKER} <less; {TRACKED_WORKER} <more; {TRACKED_WORKER} <less"
    result = place.run("--fail-on-leak", "-o", "x.ttmem", "sh", "-c", command, env=dict(WORKER_OPTIONS))
    assert result.status == 3
    assert "  100 allocations remain, " in result.err
    suspects = re.search(
        r"^  (\d+) suspects in 3 processes: (\d+) buffers that keep growing, (\S+ \S+)\n"
        r"  below: process (\d+), (\d+) of them, (\S+ \S+); others: tt-mem report --pid PID$",
        result.err,
        re.M,
    )
    assert suspects, result.err
    assert (suspects[1], suspects[2], suspects[5]) == ("3", "97", "1")  # 'free' takes the oldest
    assert f"leaks found: suspects take {suspects[3]} of a device" in result.err
    report = json.loads(
        run("report", str(place.work_folder / "x.ttmem"), "--json", "--pid", suspects[4]).out
    )
    (process,) = report["processes"]
    assert sum(origin["remaining"] for origin in process["origins"] if origin["suspect"]) == 39

    text = place.run("--no-record", "sh", "-c", command, env=dict(WORKER_OPTIONS)).err
    assert " suspects in 3 processes: 97 buffers" in text and "others:" not in text


def test_leaks_are_found_without_a_recording_that_is_kept(place: Place) -> None:
    result = leak(place, "--no-record", "--fail-on-leak")
    assert result.status == 3 and recordings(place) == []


def test_leaks_are_found_when_the_recording_cannot_be_written(place: Place) -> None:
    result = leak(place, "-o", "no/such/folder/x.ttmem", "--fail-on-leak")
    assert result.status == 3 and recordings(place) == []
    assert "there will be no recording" in result.err and "leaks found" in result.err
    assert "recorded in" not in result.err


def test_a_disk_that_fills_is_told_and_no_leaks_is_not_said(place: Place) -> None:
    args = ("-o", "x.ttmem", "--fail-on-leak=2G")
    with place.start(*args, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 1 4096")
        wait_for(lambda: it.knows(it.child()), "the worker to be known")
        fill_the_disk(it)
        it.send("exit 7")
        result = it.end()
    assert result.status == 7
    lines = result.err.splitlines()
    assert re.match(r"tt-mem: cannot (go on|finish the) recording: File too large", lines[0])
    assert "  recording stopped (File too large): origins are of the time before" in lines
    assert lines[-1] == "  leaks were looked for in a part alone: the recording stopped"
    assert "no leaks" not in result.err
    assert "recorded in part in x.ttmem (" in result.err


def test_on_a_full_disk_tracking_goes_on_and_what_was_written_can_be_read(
    place: Place, small_disk: SmallDisk
) -> None:
    file = str(small_disk.path / "x.ttmem")
    with place.start("-o", file, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 0 5 1000")
        wait_for(lambda: run_json("report", file)["processes"], "the first block")
        small_disk.fill()
        it.do("alloc 1 0 20000 1000")  # more than what is left of a page
        wait_for(lambda: "recording" in it.errors(), "the full disk to be noticed")
        it.do("alloc 0 1 3 1000")
        tracked = {"TTMEM_SOCKET": it.socket}
        wait_for(lambda: len(run_json("dump", env=tracked)["processes"][0]["buffers"]) == 20008)
        result = it.end()
    why = "No space left on device"
    lines = result.err.splitlines()
    assert lines[0] == f"tt-mem: cannot go on recording: {why}; tracking goes on without it"
    assert f"  recording stopped ({why}): origins are of the time before" in lines
    assert result.err.count(why) == 2 and "20,008 allocations remain" in result.err
    assert max(len(line) for line in lines[1:] if file not in line) <= 80
    report = run_json("report", file)
    (process,) = report["processes"]
    assert report["recording"]["complete"] is process["complete"] is False
    assert "breaks off" in process["why_incomplete"]
    assert sum(origin["remaining"] for origin in process["origins"]) == 5
    assert "5 allocations, 0 frees, not all is recorded" in run("report", file).out


@pytest.mark.parametrize("is_freed", [False, True])
def test_of_what_was_recorded_before_the_disk_was_full_what_remains_is_a_leak(
    place: Place, is_freed: bool
) -> None:
    args = ("-o", "x.ttmem", "--fail-on-leak")

    def is_suspect_recorded() -> bool:
        report = run("report", str(place.work_folder / "x.ttmem"), "--json").json
        origins = [origin for process in report["processes"] for origin in process["origins"]]
        return any(origin["suspect"] for origin in origins)

    with place.start(*args, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        forget(it)
        wait_for(is_suspect_recorded, "the leak to be on the disk")
        fill_the_disk(it)
        it.send("free 1000000" if is_freed else "truth")
        result = it.end()
    assert "  recording stopped (File too large)" in result.err
    assert result.status == (0 if is_freed else 3)
    assert ("nothing remains" in result.err) is is_freed
    assert ("leaks found" in result.err) is not is_freed


def test_suppressed_suspects_are_no_leaks(place: Place) -> None:
    result = leak(place, "--fail-on-leak", "--suppressions", str(place.no_suspects))
    assert result.status == 0 and "no leaks over the limit" in result.err


def test_suppressions_that_make_no_sense_are_told_before_the_program_runs(place: Place) -> None:
    known = place.work_folder / "known"
    known.write_text("leak:x\nwhat is this\n")
    result = place.run("--suppressions", str(known), "echo", "hello")
    assert "'leak:PATTERN'" in result.complains(2) and result.out == ""
    assert "No such file" in place.run("--suppressions", "none", "true").complains(1)
