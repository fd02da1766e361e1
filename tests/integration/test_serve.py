# SPDX-License-Identifier: Apache-2.0
"""How a server starts, refuses to, and ends."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import Callable

import pytest
from support import (
    PATIENCE_S,
    TT_MEM,
    Server,
    SmallDisk,
    Tracked,
    clean_env,
    run,
    run_json,
    run_ok,
    wait_for,
)
from tracked import wait_until_exact


def test_a_second_server_on_the_same_socket_is_refused(server: Server, folder: Path) -> None:
    with server.client() as client:
        client.alloc(0, 10, 1)
        client.sync()
        line = run("serve", "--socket", server.socket, "--no-legacy").complains(1)
        assert "another server is running" in line and server.socket in line
        assert client.query()["dram_allocated"] == 10
        assert server.status()["pid"] == server.pid


def test_a_second_server_on_the_same_legacy_socket_is_refused(
    server: Server, folder: Path
) -> None:
    other = folder / "other.sock"
    result = run("serve", "--socket", other, "--legacy-socket", server.legacy)
    assert "another server is running" in result.complains(1)
    assert not other.exists() and not Path(f"{other}.lock").exists()
    server.check()


def race(server: Server, count: int) -> tuple[list[subprocess.Popen[str]], list[str]]:
    """Starts that many on the same sockets; returns those that run, and what the others said."""
    argv = [TT_MEM, "serve", "--socket", server.socket, "--legacy-socket", server.legacy]
    started = [
        subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=clean_env())
        for _ in range(count)
    ]
    wait_for(lambda: sum(one.poll() is None for one in started) <= 1, "all but one to give up")
    running = [one for one in started if one.poll() is None]
    said = []
    for one in started:
        if one not in running:
            said.append(one.communicate(timeout=PATIENCE_S)[1])
            assert one.returncode == 1
    return running, said


@pytest.mark.parametrize("before", ["nothing", "a killed server"])
def test_of_servers_that_start_at_once_one_wins_and_the_others_say_so(
    make_server: Callable[[], Server], folder: Path, before: str
) -> None:
    server = make_server()
    for _ in range(6):
        if before == "a killed server":
            server.start()
            server.kill()
        running, said = race(server, 6)
        assert len(running) == 1 and len(said) == 5
        for text in said:
            assert text.count("\n") == 1 and "another server" in text and server.socket in text
        wait_for(lambda: run("status", server=server).status == 0, "the winner to listen")
        assert server.status()["pid"] == running[0].pid
        running[0].terminate()
        running[0].communicate(timeout=PATIENCE_S)
        assert not list(folder.glob("s.sock*")) and not list(folder.glob("s.old*"))


def test_two_servers_on_sockets_of_their_own_live_side_by_side(make_server) -> None:
    one, two = make_server("1").start(), make_server("2").start()
    with one.client() as client:
        client.alloc(0, 10, 1)
        client.sync()
        assert one.bytes() == {"DRAM": 10} and two.bytes() == {}


def test_the_socket_of_a_killed_server_is_taken_over(make_server) -> None:
    server = make_server().start()
    server.kill()
    assert os.path.exists(server.socket) and os.path.exists(server.legacy)
    server.start()
    server.check()


def test_a_socket_that_somebody_else_answers_on_is_not_taken(folder: Path) -> None:
    path = str(folder / "n.sock")
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(path)
        stranger.listen()
        assert "answers there" in run("serve", "--socket", path, "--no-legacy").complains(1)
        assert os.path.exists(path)


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_a_path_that_is_no_socket_is_left_alone(folder: Path, what: str) -> None:
    path = folder / "precious"
    if what == "folder":
        path.mkdir()
    elif what == "file":
        path.write_text("text")
    else:
        path.symlink_to("/etc/hostname")
    line = run("serve", "--socket", path, "--no-legacy").complains(1)
    assert "not a socket" in line
    assert path.is_symlink() or path.exists()
    assert not Path(f"{path}.lock").exists()


def test_a_folder_whose_parent_is_missing_is_named(folder: Path) -> None:
    line = run("serve", "--socket", folder / "a" / "b" / "n.sock", "--no-legacy").complains(1)
    assert "No such file" in line and f"{folder}/a/b" in line


def test_a_folder_that_is_a_file_is_named(folder: Path) -> None:
    (folder / "a").write_text("")
    line = run("serve", "--socket", folder / "a" / "n.sock", "--no-legacy").complains(1)
    assert "cannot" in line and f"{folder}/a" in line


def test_a_path_that_is_too_long_is_refused(folder: Path) -> None:
    path = folder / ("x" * 120)
    assert "107" in run("serve", "--socket", path, "--no-legacy").complains(2)
    line = run("serve", "--socket", folder / "n.sock", "--legacy-socket", path).complains(1)
    assert "107" in line
    line = run("serve", "--no-legacy", env={"TTMEM_SOCKET": str(path)}).complains(1)
    assert "107" in line
    assert os.listdir(folder) == []


@pytest.mark.parametrize("length", [100, 107])
def test_a_path_that_just_fits_works(make_server, folder: Path, length: int) -> None:
    server = make_server()
    server.socket = f"{folder}/" + "x" * (length - len(str(folder)) - 1)
    assert len(server.socket) == length
    server.start(has_legacy=False)
    assert server.status()["running"] is True


def with_hangups(handler: signal.Handlers) -> Callable[[], None]:
    """In the server's process, before it starts: whether it was started by nohup."""

    def prepare() -> None:
        signal.signal(signal.SIGHUP, handler)

    return prepare


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_stops_cleanly_with_a_last_line_of_totals(make_server, number: int) -> None:
    server = make_server().start(prepare=with_hangups(signal.SIG_DFL))
    with server.client() as client:
        for i in range(5):
            client.alloc(0, 10, i)
        client.free(0, 0)
        client.sync()
        process = server.process
        server.signal(number)
        assert process.wait(PATIENCE_S) == 0
        last = server.stop().splitlines()[-1]
        assert re.match(r"tt-mem: stopped after .*: 7 messages, 5 allocations, 1 free, 4 still", last)


def test_under_nohup_it_outlives_its_terminal(make_server) -> None:
    server = make_server().start(prepare=with_hangups(signal.SIG_IGN))
    server.signal(signal.SIGHUP)
    for _ in range(3):  # a signal that is taken is seen by the next turn at the latest
        assert server.status()["running"] is True
    server.stop()


def test_it_stops_while_clients_and_commands_are_connected(server: Server) -> None:
    clients = [server.client() for _ in range(50)]
    for client in clients:
        client.alloc(0, 1, 1)
    server.stop()
    for client in clients:
        client.wait_until_closed()


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.settimeout(PATIENCE_S)
        notify.bind(str(folder / "notify"))
        process = subprocess.Popen(
            [TT_MEM, "serve", "--socket", str(folder / "n.sock"), "--no-legacy"],
            stderr=subprocess.DEVNULL,
            env=clean_env(NOTIFY_SOCKET=str(folder / "notify")),
        )
        try:
            assert notify.recv(100) == b"READY=1"
            socket.socket(socket.AF_UNIX).connect(str(folder / "n.sock"))  # it is, indeed
            process.send_signal(signal.SIGTERM)
            assert notify.recv(100) == b"STOPPING=1"
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()


def test_systemd_may_listen_on_an_abstract_address(folder: Path) -> None:
    name = f"ttm-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.settimeout(PATIENCE_S)
        notify.bind("\0" + name)
        process = subprocess.Popen(
            [TT_MEM, "serve", "--socket", str(folder / "n.sock"), "--no-legacy"],
            stderr=subprocess.DEVNULL,
            env=clean_env(NOTIFY_SOCKET="@" + name),
        )
        try:
            assert notify.recv(100) == b"READY=1"
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def test_it_says_where_it_listens(server: Server) -> None:
    wait_for(lambda: "listens on" in server.stderr)
    assert server.socket in server.stderr and server.legacy in server.stderr


def test_without_the_original_protocol_there_is_no_such_socket(make_server) -> None:
    server = make_server().start(has_legacy=False)
    assert not os.path.exists(server.legacy)
    assert server.status()["running"] is True


def test_a_server_may_choose_its_socket_by_the_environment(make_server, folder: Path) -> None:
    path = str(folder / "env.sock")
    process = subprocess.Popen(
        [TT_MEM, "serve", "--no-legacy"],
        stderr=subprocess.PIPE,
        env=clean_env(TTMEM_SOCKET=path),
    )
    try:
        wait_for(lambda: os.path.exists(path))
        assert run_ok("status", env={"TTMEM_SOCKET": path})
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and not os.path.exists(path)


def test_a_lock_file_that_was_left_behind_is_no_obstacle(make_server) -> None:
    server = make_server()
    Path(server.socket + ".lock").write_text("")
    server.start()


def test_a_socket_removed_by_hand_does_not_keep_it_from_stopping(make_server) -> None:
    server = make_server().start()
    os.unlink(server.socket)
    os.unlink(server.legacy + ".lock")
    server.stop()


def test_a_closed_stderr_is_survived(make_server) -> None:
    server = make_server().start(prepare=lambda: os.close(2))
    server.check()


def test_a_full_stderr_is_survived(make_server) -> None:
    read_end, write_end = os.pipe()
    try:
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        server = make_server().start(prepare=lambda: os.dup2(write_end, 2) and None)
        with server.client() as client:
            for _ in range(100):
                with server.client() as bad:
                    bad.send(b"\xff")
                    bad.wait_until_closed()
            client.alloc(0, 1, 1)
            assert client.query()["dram_allocated"] == 1
        server.stop()
    finally:
        os.close(read_end)
        os.close(write_end)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["-x"],
        ["--socket"],
        ["word"],
        ["--board", "nonsense"],
        ["--board", "9999=n150"],
        ["--board", "-1=n150"],
        ["--board", "x=n150"],
        ["--board", "=n150"],
        ["--board", ""],
    ],
)
def test_wrong_options_are_told_in_one_line(arguments: list[str]) -> None:
    assert "--help" in run("serve", *arguments).complains(2)


def test_help_tells_the_options() -> None:
    for form in (("serve", "--help"), ("help", "serve"), ("--help", "serve")):
        text = run_ok(*form).out
        assert "usage: tt-mem serve" in text
        for option in ("--socket", "--legacy-socket", "--no-legacy", "--board"):
            assert option in text


def test_boards_give_capacities(make_server) -> None:
    server = make_server().start("--board", "n300", "--board", "7=p150a")
    devices = {d["id"]: d for d in server.monitor()["devices"]}
    assert set(devices) == {0, 7}
    assert devices[0]["arch"] == "wormhole_b0" and devices[7]["arch"] == "blackhole"
    assert devices[0]["regions"]["DRAM"]["capacity_bytes"] == 12 << 30
    assert devices[0]["regions"]["L1"]["capacity_bytes"] == 64 * 1464 * 1024


def test_on_a_full_disk_a_server_goes_on_without_its_recording(
    make_server, small_disk: SmallDisk
) -> None:
    records = small_disk.path / "records"
    records.mkdir()
    server: Server = make_server().start("--record", str(records))
    with Tracked(server) as worker:
        worker.do("alloc 0 0 5 1000")
        (file,) = map(str, records.iterdir())
        wait_for(lambda: run_json("report", file)["processes"], "the first block")
        small_disk.fill()
        worker.do("alloc 1 0 20000 1000")  # more than what is left of a page
        wait_for(lambda: "recording" in server.stderr, "the full disk to be noticed")
        worker.do("alloc 0 1 3 1000")
        wait_until_exact(server, worker)
        server.check()
    told = [line for line in server.stop().splitlines() if "No space left" in line]
    assert len(told) == 1 and told[0].endswith("; tracking goes on without it"), told
    report = run_json("report", file)
    (process,) = report["processes"]
    assert report["recording"]["complete"] is process["complete"] is False
    assert sum(origin["remaining"] for origin in process["origins"]) == 5
