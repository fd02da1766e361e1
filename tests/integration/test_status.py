# SPDX-License-Identifier: Apache-2.0
"""tt-mem status, and how commands find the server they talk to."""

import errno
import os
import re
import socket
import struct
import threading
from pathlib import Path

import pytest
from support import (
    END,
    F_STATUS,
    HELLO,
    MAGIC,
    Server,
    SmallDisk,
    Tracked,
    frame,
    run,
    run_json,
    run_ok,
    run_on_terminal,
    wait_for,
)

COMMANDS = [("status",), ("dump",), ("monitor", "--once"), ("tail",)]


def test_json_has_the_counters(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 10, 1)
        client.alloc(0, 10, 2)
        client.free(0, 1)
        client.sync()
        status = server.status()
        assert status["schema"] == "tt-mem/status/1"
        assert status["running"] is True
        assert status["pid"] == server.pid
        assert status["uptime_ns"] > 0
        assert status["events"] == 4
        assert (status["allocs"], status["frees"], status["lives"]) == (2, 1, 1)
        assert status["connections"] == 2
        assert "check" not in status
        (row,) = status["clients"]
        assert row["pid"] == os.getpid() and row["uid"] == os.getuid()
        assert row["source"] == "original"
        assert (row["connections"], row["lives"], row["events"]) == (1, 1, 3)
        for counter in (
            "unknown_frees",
            "ambiguous_frees",
            "replaced",
            "refused_device",
            "refused_region",
            "refused_size",
            "refused_type",
            "closed_garbage",
            "closed_slow",
            "torn_messages",
            "connections_refused",
            "lost_tail_events",
            "lost_log_lines",
        ):
            assert status[counter] == 0


def test_check_adds_up_anew(server: Server) -> None:
    with server.client() as client:
        client.burst(5000)
        client.sync()
        assert server.status("--check")["check"] == {
            "ok": True,
            "lives": 5000,
            "processes": 1,
            "mismatches": 0,
        }
        text = run_ok("status", "--check", server=server).out
        assert "5,000 allocations" in text and "all totals are right" in text


def test_text_tells_troubles_only_when_there_are_any(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 10, 1)
        client.sync()
        quiet = run_ok("status", server=server).out
        assert "nothing refused" in quiet
        assert "torn" not in quiet and "unknown" not in quiet
        client.free(0, 99)
        client.alloc(5000, 1, 1)
        client.sync()
        loud = run_ok("status", server=server).out
        assert "frees of the unknown" in loud and "refused: device id" in loud
        assert str(os.getpid()) in loud


def test_on_eighty_columns_the_command_stands_below_its_numbers(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 10, 1)
        client.sync()
        status, text = run_on_terminal("status", server=server, env={"NO_COLOR": "1"})
        wide = run_ok("status", server=server).out
    lines = [line.rstrip() for line in text.splitlines()]
    at = lines.index(next(line for line in lines if line.endswith("ring")))
    assert status == 0 and re.match(rf" +{os.getpid()}  original +1 +\d+$", lines[at + 1])
    assert re.match(r" {12}\S*python", lines[at + 2]), text
    assert re.search(rf"^ +{os.getpid()}  original .* \S*python", wide, re.M)


def test_a_recording_that_has_stopped_is_told_with_its_reason(
    make_server, small_disk: SmallDisk
) -> None:
    server: Server = make_server().start("--record", str(small_disk.path))
    with Tracked(server) as worker:
        worker.do("alloc 0 0 5 1000")
        status = server.status()
        assert (status["recording_errno"], status["recording_trouble"]) == (0, "")
        assert "recording" not in run_ok("status", server=server).out
        small_disk.fill()
        worker.do("alloc 1 0 20000 1000")  # more than what is left of a page
        wait_for(lambda: server.status()["recording_errno"], "the full disk to be noticed")
        why = "No space left on device"
        status = server.status()
        assert (status["recording_errno"], status["recording_trouble"]) == (errno.ENOSPC, why)
        lines = run_ok("status", server=server).out.splitlines()
        told = f"  recording stopped ({why}): tracking goes on without it"
        assert [line for line in lines if "recording" in line] == [told] and len(told) <= 80
    assert why in server.stop()


def test_an_idle_server_says_that_no_program_reports(server: Server) -> None:
    assert "no program reports" in run_ok("status", server=server).out


@pytest.mark.parametrize("command", COMMANDS)
def test_no_server_at_the_chosen_socket_is_one_line(folder: Path, command: tuple[str, ...]) -> None:
    path = str(folder / "none.sock")
    line = run(*command, env={"TTMEM_SOCKET": path}).complains(1)
    assert path in line and "none is running there" in line
    assert run(*command, "--socket", path).complains(1) == line


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_servers_socket_is_no_server(make_server, command: tuple[str, ...]) -> None:
    server = make_server().start()
    server.kill()
    assert "none is running" in run(*command, server=server).complains(1)


def nothing_runs_here() -> bool:
    return not any(
        Path(folder).is_dir() and any(Path(folder).glob("tt-mem*.sock"))
        for folder in ("/run/tt-mem", f"/tmp/tt-mem-{os.geteuid()}")
    )


quiet_machine = pytest.mark.skipif(
    not nothing_runs_here(), reason="needs a machine without a server of its own"
)


@quiet_machine
def test_no_server_anywhere_is_one_line(folder: Path) -> None:
    line = run("status", env={"XDG_RUNTIME_DIR": str(folder)}).complains(1)
    assert "none is running" in line and "tt-mem serve" in line


@quiet_machine
def test_the_users_own_server_is_found(make_server, folder: Path) -> None:
    server = make_server("tt-mem").start()
    assert server.socket == str(folder / "tt-mem.sock")
    status = run_json("status", env={"XDG_RUNTIME_DIR": str(folder)})
    assert status["pid"] == server.pid


@quiet_machine
def test_a_server_inside_another_command_is_found(make_server, folder: Path) -> None:
    server = make_server("tt-mem.run.4242").start()
    status = run_json("status", env={"XDG_RUNTIME_DIR": str(folder)})
    assert status["pid"] == server.pid


def test_several_servers_are_listed_and_one_must_be_chosen(make_server, folder: Path) -> None:
    servers = [make_server(name).start() for name in ("tt-mem", "tt-mem.run.77", "tt-mem.run.78")]
    result = run("status", env={"XDG_RUNTIME_DIR": str(folder)})
    assert result.status == 2 and result.out == ""
    first, *rest = result.err.splitlines()
    assert first.startswith("tt-mem: several servers") and "--socket" in first
    assert {server.socket for server in servers} <= {line.strip() for line in rest}
    for server in servers:
        env = {"XDG_RUNTIME_DIR": str(folder)}
        assert run_json("status", "--socket", server.socket, env=env)["pid"] == server.pid
        assert run_json("status", server=server, env=env)["pid"] == server.pid


def test_the_option_beats_the_environment(make_server) -> None:
    one, two = make_server("1").start(), make_server("2").start()
    assert run_json("status", "-s", two.socket, server=one)["pid"] == two.pid


def answer_with(path: Path, data: bytes, then: bytes = b"") -> threading.Thread:
    """A stranger there, who says that to the first caller, 'then' when asked, and hangs up."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(data)
        if then:
            connection.recv(4096)
            connection.sendall(then)
        connection.close()
        listener.close()

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "gone|no tt-mem|not a tt-mem|Broken"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100, "not a tt-mem server"),
        (frame(99), "not a tt-mem server"),
        (frame(HELLO, b"x" * 64), "not a tt-mem server"),
        (
            frame(HELLO, struct.pack("<IHHQQiI32s", MAGIC, 9, 3, 0, 0, 1, 0, b"9.9.9")),
            r"9\.9\.9.*protocol 9\.3.*protocol 1\.0",
        ),
        (
            frame(HELLO, struct.pack("<IHHQQiI32s", MAGIC, 1, 0, 0, 1 << 9, 1, 0, b"5.5")),
            r"5\.5",
        ),
        (frame(2, b"go away"), "go away"),
    ],
    ids=["nothing", "http", "frame", "magic", "major", "feature", "refusal"],
)
def test_something_that_is_no_server_of_ours_is_told(
    folder: Path, data: bytes, words: str
) -> None:
    path = folder / "stranger.sock"
    thread = answer_with(path, data)
    line = run("status", "--socket", path).complains(1)
    thread.join()
    assert re.search(words, line), line


def test_answers_that_make_no_sense_are_told(folder: Path) -> None:
    greeting = frame(HELLO, struct.pack("<IHHQQiI32s", MAGIC, 1, 0, 0, 0, 1, 0, b"1"))
    for number, nonsense in enumerate(
        (frame(32, b"x"), frame(35, b"\xff" * 200), struct.pack("<HHI", 32, 0, 2**31), b"")
    ):
        path = folder / f"{number}.sock"
        thread = answer_with(path, greeting + nonsense)
        run("status", "--socket", path).complains(1)
        thread.join()


@pytest.mark.parametrize("further, trouble", [((), ""), ((errno.EIO, 99), "Input/output error")])
def test_servers_that_know_fewer_or_more_counters_are_understood(
    folder: Path, further: tuple[int, ...], trouble: str
) -> None:
    path = folder / "other.sock"
    greeting = frame(HELLO, struct.pack("<IHHQQiI32s", MAGIC, 1, 0, 0, 0, 1, 0, b"1"))
    counters = (*range(1, 31), *further)
    status = struct.pack(f"<II{len(counters)}Q", len(counters), 0, *counters)
    for arguments in ((), ("--json",)):
        thread = answer_with(path, greeting, frame(F_STATUS, status) + frame(END))
        result = run_ok("status", *arguments, "--socket", path)
        thread.join()
        path.unlink()
        if arguments:
            told = result.json
            assert (told["pid"], told["longest_turn_ns"]) == (1, 30)
            assert told["recording_trouble"] == trouble
        else:
            assert (f"recording stopped ({trouble})" in result.out) is bool(further)


def test_control_characters_of_a_server_do_not_reach_the_terminal(folder: Path) -> None:
    path = folder / "evil.sock"
    thread = answer_with(path, frame(2, b"\033]0;pwned\007\033[2J"))
    result = run("status", "--socket", path)
    thread.join()
    assert "\033" not in result.err and "\007" not in result.err


@pytest.mark.parametrize("arguments", [["--nonsense"], ["-q"], ["word"], ["--json=1"], ["-s"]])
def test_wrong_options_are_told_in_one_line(arguments: list[str]) -> None:
    assert "--help" in run("status", *arguments).complains(2)


def test_an_unknown_command_is_told_in_one_line() -> None:
    assert "nonsense" in run("nonsense").complains(2)


def test_without_a_command_the_help_is_shown_and_the_status_is_2() -> None:
    result = run()
    assert result.status == 2 and "usage: tt-mem" in result.out + result.err
    assert run_ok("--help").out == run_ok("help").out == run_ok("-h").out
