# SPDX-License-Identifier: Apache-2.0
"""Several users: whose socket may be used by whom, and who sees what."""

import os
import socket
import stat
from pathlib import Path

import pytest
from library import Library
from native import GET_LIVES, GET_SITES, GET_STATUS, GET_TOTALS, Native
from support import (
    IS_ROOT,
    NOBODY,
    SOMEBODY,
    Server,
    Tail,
    become,
    needs_root,
    run,
    run_json,
    run_ok,
    wait_for,
)


def mode_of(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def can_connect(path: str, uid: int) -> bool:
    """Whether a process of that user can."""
    pid = os.fork()
    if pid == 0:
        try:
            become(uid)
            socket.socket(socket.AF_UNIX).connect(path)
            os._exit(0)
        except PermissionError:
            os._exit(1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 1)
    return status == 0


def all_frames(server: Server, uid: int) -> bytes:
    """Whatever the server answers to that user, byte by byte."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(uid)
            native = Native(server.socket)
            requests = [(GET_STATUS, 0), (GET_TOTALS, 0), (GET_LIVES, 4), (GET_SITES, 4)]
            for kind, length in requests:
                for _, payload in native.ask(kind, bytes(length)):
                    os.write(writable, payload)
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, "rb") as answer:
        frames = answer.read()
    os.waitpid(pid, 0)
    return frames


def in_new_folder(server: Server, folder: Path, owner: int | None = None) -> Path:
    """Its sockets lie in a folder that does not exist yet, below one of 'owner'."""
    parent = folder / "p"
    parent.mkdir()
    if owner is not None:
        os.chown(parent, owner, owner)
    made = parent / "made"
    server.socket = str(made / "n.sock")
    server.legacy = str(made / "o.sock")
    return made


@needs_root
def test_the_socket_of_root_is_for_all(make_server, folder: Path) -> None:
    server = make_server()
    made = in_new_folder(server, folder)
    server.start(prepare=lambda: os.umask(0o077) and None)
    assert mode_of(made) == 0o755
    assert mode_of(server.socket) == mode_of(server.legacy) == 0o666
    assert can_connect(server.socket, NOBODY) and can_connect(server.legacy, NOBODY)


def test_the_socket_of_a_user_is_that_users(make_server, folder: Path) -> None:
    server = make_server()
    made = in_new_folder(server, folder, NOBODY if IS_ROOT else None)
    server.start(uid=NOBODY if IS_ROOT else None, prepare=lambda: os.umask(0) and None)
    assert mode_of(made) == 0o700
    assert mode_of(server.socket) == mode_of(server.legacy) == 0o600
    if IS_ROOT:
        assert can_connect(server.socket, NOBODY) and can_connect(server.legacy, NOBODY)
        assert not can_connect(server.socket, SOMEBODY)
        made.chmod(0o755)  # even then
        assert not can_connect(server.socket, SOMEBODY)
        assert not can_connect(server.legacy, SOMEBODY)
        assert "Permission denied" in run("status", server=server, uid=SOMEBODY).complains(1)


@needs_root
def test_a_foreign_user_sees_totals_and_no_single_allocations(server: Server) -> None:
    with server.worker() as roots, server.worker(uid=NOBODY) as nobodys:
        roots.alloc(0, 1000, 0xAAA)
        roots.sync()
        nobodys.alloc(0, 200, 0xBBB)
        nobodys.sync()
        sees = {
            0: {roots.pid: [0xAAA], nobodys.pid: [0xBBB]},
            NOBODY: {roots.pid: [], nobodys.pid: [0xBBB]},
            SOMEBODY: {roots.pid: [], nobodys.pid: []},
        }
        for uid, expected in sees.items():
            processes = server.dump(uid=uid)["processes"]
            assert {p["pid"]: [b["id"] for b in p["buffers"]] for p in processes} == expected
            assert {p["pid"]: len(p["origins"]) for p in processes} == {
                pid: len(ids) for pid, ids in expected.items()
            }
            totals = {
                p["pid"]: p["devices"][0]["regions"]["DRAM"]["remaining_bytes"] for p in processes
            }
            assert totals == {roots.pid: 1000, nobodys.pid: 200}
        text = run_ok("dump", server=server, uid=NOBODY).out
        assert "0xbbb" in text and "0xaaa" not in text
        assert text.count("another user's: totals only") == 1
        assert "2 buffers" in text and "1.2 KiB" in text
        text = run_ok("dump", server=server, uid=SOMEBODY).out
        assert text.count("another user's: totals only") == 2


@needs_root
def test_a_foreign_user_sees_no_events_of_others(server: Server) -> None:
    with server.worker(uid=SOMEBODY) as foreign, server.worker(uid=NOBODY) as marker:
        with Tail(server=server, marker=marker, uid=NOBODY) as tail:
            foreign.alloc(0, 123456, 0xF00)
            foreign.free(0, 0xF00)
            foreign.sync()
            assert tail.lines_until_mark() == []
        with server.client() as mine, Tail(server=server, marker=mine) as tail:
            foreign.alloc(0, 123456, 0xF00)
            foreign.sync()
            assert len(tail.lines_until_mark()) == 1


@needs_root
def test_a_foreign_user_does_not_read_the_texts_of_another(server: Server) -> None:
    """They have the rights of allocations; that something is not tracked is about the totals."""
    with Library(server) as worker:
        worker.do("say secret-runtime 1.2/secret-trouble: no /home/secret", "push secret-context")
        worker.do("mark secret-mark", "alloc 1 4096", "name 1 secret-name secret-context")
        worker.do("fail 0 4096 64")
        worker.wait_for_ids(1)
        for command in ("dump", "status", "ps", "monitor --once", "devices"):
            for options in ((), ("--json",)):
                done = run_ok(*command.split(), *options, server=server, uid=NOBODY)
                assert "secret" not in done.out, (command, options)
        frames = all_frames(server, NOBODY)
        assert b"library_worker" in frames and b"secret" not in frames
        assert frames.count(b"library_worker") == all_frames(server, 0).count(b"library_worker")
        client = run_json("status", server=server, uid=NOBODY)["clients"][0]
        assert client["runtime"] == "" and client["trouble"] == "something in it is not tracked"
        (process,) = server.dump(uid=NOBODY)["processes"]
        assert not process["complete"]
        own = run_json("status", server=server)["clients"][0]
        assert own["runtime"] == "secret-runtime 1.2" and "secret-trouble" in own["trouble"]


@needs_root
def test_a_foreign_user_cannot_end_lives_of_another(server: Server) -> None:
    with server.worker() as roots, server.worker(uid=NOBODY) as nobodys:
        roots.alloc(0, 1000, 0xAAA)
        roots.cb_alloc(0, 10, 0xAAB)
        roots.sync()
        nobodys.free(0, 0xAAA)
        nobodys.cb_free(0, 10, 0xAAB)
        nobodys.sync()
        assert server.bytes() == {"DRAM": 1000, "CB": 10}
        assert server.check()["unknown_frees"] == 2


@needs_root
def test_a_process_that_changes_its_user_is_another_one(server: Server) -> None:
    """What it said as root is neither seen nor freed by what it says as somebody else."""
    ready, told = os.pipe()
    wait, go_on = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go_on)
            as_root = server.client()
            as_root.alloc(0, 1000, 0xAAA)
            as_root.sync()
            become(NOBODY)
            as_nobody = server.client()
            as_nobody.alloc(0, 200, 0xBBB)
            as_nobody.free(0, 0xAAA)
            as_nobody.sync()
            os.write(told, b"1")
            os.read(wait, 1)
            as_root.close()
            as_nobody.close()
            os.write(told, b"2")
            os.read(wait, 1)
            again = server.client()
            again.alloc(0, 30, 0xCCC)
            again.sync()
            os.write(told, b"3")
            os.read(wait, 1)
        finally:
            os._exit(0)
    os.close(wait)
    try:
        assert os.read(ready, 1) == b"1"
        rows = {row["remaining"][0]: row for row in map(remaining_of, processes_of(server, pid))}
        assert set(rows) == {0xAAA, 0xBBB}
        assert rows[0xBBB]["unknown_frees"] == 1 and rows[0xAAA]["unknown_frees"] == 0
        seen = [b["id"] for p in server.dump(uid=NOBODY)["processes"] for b in p["buffers"]]
        assert seen == [0xBBB]
        os.write(go_on, b"x")
        assert os.read(ready, 1) == b"2"
        wait_for(lambda: all(c["connections"] == 0 for c in server.status()["clients"]))
        os.write(go_on, b"x")
        assert os.read(ready, 1) == b"3"
        (process,) = processes_of(server, pid)
        assert [b["id"] for b in process["buffers"]] == [0xBBB, 0xCCC]
    finally:
        os.close(go_on)
        os.waitpid(pid, 0)


def processes_of(server: Server, pid: int) -> list[dict]:
    return [process for process in server.dump()["processes"] if process["pid"] == pid]


def remaining_of(process: dict) -> dict:
    return {**process, "remaining": [buffer["id"] for buffer in process["buffers"]]}


@needs_root
def test_a_server_of_another_user_keeps_the_lives_of_roots_processes(
    make_server, folder: Path
) -> None:
    """The original took a process it may not signal for dead."""
    server = make_server()
    in_new_folder(server, folder, NOBODY)
    server.start(uid=NOBODY)
    with server.worker() as roots:
        roots.alloc(0, 1000, 1)
        roots.sync()
        roots.hang_up()
        wait_for(lambda: server.status()["clients"][0]["connections"] == 0)
        assert server.bytes() == {"DRAM": 1000}
        assert server.check()["processes"] == 1
        roots.kill()
        wait_for(lambda: server.status()["processes"] == 0, "the end to be noticed")
    assert server.bytes() == {}


@needs_root
def test_the_user_of_a_server_sees_all_that_is_reported_to_it(make_server, folder: Path) -> None:
    server = make_server()
    in_new_folder(server, folder, NOBODY)
    server.start(uid=NOBODY)
    with server.worker() as roots:
        roots.alloc(0, 1000, 0xAAA)
        roots.sync()
        (process,) = server.dump(uid=NOBODY)["processes"]
        assert [b["id"] for b in process["buffers"]] == [0xAAA]


@needs_root
@pytest.mark.parametrize("mode, is_sticky", [(0o777, False), (0o775, False), (0o777, True)])
def test_a_folder_that_others_can_write_to_is_refused_unless_sticky(
    make_server, folder: Path, mode: int, is_sticky: bool
) -> None:
    server = make_server()
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(mode | (stat.S_ISVTX if is_sticky else 0))
    path = str(shared / "n.sock")
    if is_sticky:
        server.socket = path
        server.start()
        return
    line = run("serve", "--socket", path, "--no-legacy").complains(1)
    assert "others can write to its folder" in line
    assert os.listdir(shared) == []


@needs_root
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    line = run("serve", "--socket", theirs / "n.sock", "--no-legacy").complains(1)
    assert "belongs to another user" in line
    assert os.listdir(theirs) == []


@needs_root
def test_a_folder_that_is_a_link_of_another_user_is_refused(folder: Path) -> None:
    (folder / "real").mkdir()
    link = folder / "link"
    link.symlink_to(folder / "real")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    line = run("serve", "--socket", link / "n.sock", "--no-legacy").complains(1)
    assert "link of another user" in line


@needs_root
def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    line = run("serve", "--socket", locked / "n.sock", "--no-legacy", uid=NOBODY).complains(1)
    assert "Permission denied" in line and str(locked) in line


@needs_root
def test_a_socket_planted_by_another_user_is_not_followed(make_server, folder: Path) -> None:
    """In a sticky folder anybody can make the lock file first, or a link in its place."""
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    victim = folder / "victim"
    victim.write_text("precious")
    (shared / "n.sock.lock").symlink_to(victim)
    run("serve", "--socket", shared / "n.sock", "--no-legacy").complains(1)
    assert victim.read_text() == "precious"
