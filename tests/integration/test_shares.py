# SPDX-License-Identifier: Apache-2.0
"""
Root's server is for all users of a machine: what each of them may have of it, one share at a time.

Every test has a user who takes its share and more. It is told so, and another user and root are
served as before. What takes millions of allocations to reach is in tests/unit/test_user.c: live
allocations, circular buffers and their sets of cores.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from functools import partial
from typing import Any, Callable, Iterator

import pytest
from basics import LONG
from support import (
    ALLOC,
    ATTACH,
    CHECK,
    DUMP_REMAINING,
    END,
    ERROR,
    GET_LIVES,
    GET_STATUS,
    GET_TOTALS,
    IS_SANITIZED,
    PATIENCE_S,
    QUERY,
    SUBSCRIBE_EVENTS,
    SUBSCRIBE_TOTALS,
    Closed,
    Native,
    Original,
    Server,
    Tracked,
    become,
    client_of,
    frame,
    lives_of,
    needs_root,
    pack,
    raise_fd_limit,
    row_of,
    segment,
    segment_header,
    wait_for,
)

pytestmark = needs_root

# As in src/server/account.h and src/model/user.h.
USER_CONNECTIONS = 1024
USER_PROCESSES = 1024
USER_FILES = 512  # on their way to be closed
USER_SEGMENT_BYTES = 512 << 30
USER_RINGS = 1 << 19
USER_SNAPSHOTS = 4
USER_TAILS = 16
USER_ANSWER_BYTES = 32 << 20
# A buffer has at most twice the room that it needs.
ANSWER_MEMORY = 2 * USER_ANSWER_BYTES + (16 << 20)
USER_SITES = 65536
USER_ORIGIN_BYTES = 64 << 20
USER_DEVICES = 2048
USER_DEVICE_SETS = 1024

# What one process, or one segment, may have.
PROCESS_DEVICE_SETS = 512
SEGMENT_BYTES = 1 << 30
SEGMENT_RINGS = 4096
ALL_DEVICE_SETS = 16384  # of all processes together

# The one that takes too much, and others. The kernel has limits for a user of the machine, as of
# files on their way through sockets: no other test has these users.
GREEDY, OTHER = 64001, 64002
USERS = [GREEDY, OTHER, 64003, 100_001, 100_002]

slow_under_sanitizers = pytest.mark.skipif(IS_SANITIZED, reason="takes long under a sanitizer")


# ---- several users ----


@contextlib.contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Connections that are made here are of that user."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def native_of(server: Server, uid: int, greets: bool = True) -> Native:
    with as_user(uid):
        return Native(server.socket, greets)


def legacy_of(server: Server, uid: int) -> Original:
    with as_user(uid):
        return Original(server.legacy)


def expect_error(native: Native) -> str:
    """The server says why it refuses, and closes the connection."""
    while True:
        kind, payload = native.read_frame()
        if kind == ERROR:
            native.wait_until_closed()
            return payload.decode()


def is_closed(native: Native) -> bool:
    """Whether the server has closed the connection."""
    poll = select.poll()
    poll.register(native.sock, select.POLLHUP)
    return poll.poll(0) != []


def assert_served(server: Server, *uids: int) -> None:
    """These users connect, are answered, and what they report is known."""
    for uid in uids:
        with native_of(server, uid) as native:
            native.ask(GET_TOTALS)
        with legacy_of(server, uid) as legacy:
            before = legacy.query(1000)["dram_allocated"]
            legacy.alloc(1000, 4096, uid)
            assert legacy.query(1000)["dram_allocated"] == before + 4096
            legacy.free(1000, uid)
            assert legacy.query(1000)["dram_allocated"] == before
    server.check()


def has_processes(server: Server, uid: int) -> bool:
    return any(client["uid"] == uid for client in server.status()["clients"])


def count_fds(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


class Crowd:
    """
    Processes of one user. One after the other calls 'act' with its number and waits until all are
    to end; what 'act' has returned is in 'answers'.
    """

    def __init__(self, uid: int, count: int, act: Callable[[int], Any]):
        self.uid = uid
        answers, theirs = os.pipe()
        end, self._end = os.pipe()
        self._leader = os.fork()
        if self._leader == 0:
            os.close(answers)
            os.close(self._end)
            self._lead(count, act, theirs, end)
        os.close(theirs)
        os.close(end)
        self.pids: list[int] = []
        self.answers: list[Any] = []
        with open(answers, encoding="utf-8") as lines:
            for line in lines:
                pid, answer = json.loads(line)
                self.pids.append(pid)
                self.answers.append(answer)
                if len(self.answers) == count:
                    break
        if len(self.answers) < count:
            self.end()
            pytest.fail(f"{len(self.answers)} of {count} processes did what they should")

    def _lead(self, count: int, act: Callable[[int], Any], answers: int, end: int) -> None:
        """In the process that all others are children of."""
        try:
            become(self.uid)
            gc.disable()  # objects of the test must not close fds that are others by now
            for number in range(count):
                done, theirs = os.pipe()
                if os.fork() == 0:
                    os.close(done)
                    answer = act(number)
                    os.write(answers, json.dumps([os.getpid(), answer]).encode() + b"\n")
                    os.close(answers)
                    os.close(theirs)
                    os.read(end, 1)
                    os._exit(0)
                os.close(theirs)
                os.read(done, 1)
                os.close(done)
            os.close(answers)
            os.read(end, 1)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)

    def end(self) -> None:
        """Returns when all of them have ended."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1
            os.waitpid(self._leader, 0)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


# ---- segments that are made by hand ----


def note(kind: int, raw: bytes) -> bytes:
    padded = struct.pack("<II", kind, len(raw)) + raw
    return padded + bytes(-len(padded) % 8)


NOTE_FIRST = 1024  # the number of the first note
NOTE_DEVICES, NOTE_ORIGIN, NOTE_CODE, NOTE_PYTHON_STACK = 1, 5, 16, 17


def allocation(
    serial: int, devices: int = 0, allocator: int = 0, origin: int = 0, region: int = 0
) -> bytes:
    """A record."""
    fields = (1, serial, serial, 64, 100, 100, allocator, 0, devices, origin, 1, region, 0, 0)
    return struct.pack("<QQQQQQHHIIBBBB", *fields)


def segment_of(
    records: list[bytes], notes: bytes = b"", rings: int = 1, size: int | None = None
) -> int:
    """A segment with these records in the first of its rings, and these notes."""
    at_ring = 65792
    slots = 1 << max(len(records) - 1, 0).bit_length()
    at_notes = at_ring + (128 + 64 * slots) * rings
    size = size or at_notes + max(len(notes), 8)
    header = segment_header(
        rings=rings,
        slots=slots,
        used=1,
        header_bytes=at_ring,
        notes_offset=at_notes,
        segment_bytes=size,
        notes_bytes=max(len(notes), 8),
    )
    ring = struct.pack("<Q120x", len(records)) + b"".join(records)
    fd = segment(header, size=size, seals=0)
    os.pwrite(fd, ring, at_ring)
    os.pwrite(fd, notes, at_notes)
    seal(fd)
    return fd


def seal(fd: int) -> None:
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)


def attach_segment(native: Native, fd: int) -> str:
    """Returns why the server refuses it, "" when all that it has is known."""
    wake = os.eventfd(0)
    socket.send_fds(native.sock, [frame(ATTACH) + frame(GET_STATUS)], [fd, wake])
    os.close(wake)
    while True:
        kind, payload = native.read_frame()
        if kind == ERROR:
            return payload.decode()
        if kind == END:
            return ""


# ---- connections ----


def test_a_user_has_so_many_connections_and_no_more(make_server) -> None:
    raise_fd_limit(USER_CONNECTIONS + 200)
    server = make_server().start(prepare=limit_fds(8192))
    taken = [native_of(server, GREEDY, greets=False) for _ in range(USER_CONNECTIONS)]
    wait_for(lambda: server.status()["connections"] == USER_CONNECTIONS + 1)
    before = server.status()["connections_refused"]
    with native_of(server, GREEDY, greets=False) as one_more:
        assert one_more.wait_until_closed() == b""
    with legacy_of(server, GREEDY) as one_more:
        assert one_more.wait_until_closed() == b""
    assert server.status()["connections_refused"] == before + 2
    assert_served(server, OTHER, 0)
    assert not any(is_closed(native) for native in taken)
    for native in taken:
        native.close()
    wait_for(lambda: server.status()["connections"] == 1)
    assert_served(server, GREEDY)


def limit_fds(count: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


FEW_FDS = 610
FEW_CONNECTIONS = (FEW_FDS - 160) // 3  # the server keeps 160, and three for each connection


def try_to_connect(server: Server, uid: int) -> Native | None:
    try:
        return native_of(server, uid)
    except (Closed, BrokenPipeError):
        return None


def connect_until_refused(server: Server, uid: int) -> list[Native]:
    taken = []
    while native := try_to_connect(server, uid):
        taken.append(native)
        assert len(taken) <= FEW_CONNECTIONS
    return taken


def test_each_user_gets_in_where_connections_are_few(make_server) -> None:
    server = make_server().start(prepare=limit_fds(FEW_FDS))
    first, second, third = USERS[:3]
    taken = {first: connect_until_refused(server, first)}
    assert len(taken[first]) == FEW_CONNECTIONS // 4 * 3
    for uid, users in ((second, 2), (third, 3)):
        taken[uid] = connect_until_refused(server, uid)
        assert len(taken[uid]) >= FEW_CONNECTIONS // users
        for other, natives in taken.items():  # each gave up its newest, and keeps about its part
            kept = [not is_closed(native) for native in natives]
            assert kept == sorted(kept, reverse=True)
            assert sum(kept) > FEW_CONNECTIONS // (users + 1), other
    assert_served(server, *USERS[3:], 0)
    roots = [Native(server.socket) for _ in range(FEW_CONNECTIONS // 8)]
    for native in roots:
        native.ask(GET_STATUS)
    assert_served(server, *USERS[3:], 0)


# ---- processes ----


# A small program, of which a thousand processes are there soon: each reports one allocation by the
# original protocol, disconnects, and waits for the end of its input.
REPORT_ONCE = """
import os, socket, sys
path, uid, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
message = bytes.fromhex(sys.argv[4])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
for _ in range(count):
    if os.fork() == 0:
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(message)
        s.recv(72, socket.MSG_WAITALL)
        s.close()
        os.write(1, b"x")
        os.read(0, 1)
        os._exit(0)
os.read(0, 1)
os._exit(0)
"""


@contextlib.contextmanager
def reporting_processes(server: Server, uid: int, count: int) -> Iterator[None]:
    message = pack(72, type=ALLOC, size=1, buffer_id=1) + pack(72, type=QUERY)
    arguments = [server.legacy, str(uid), str(count), message.hex()]
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", REPORT_ONCE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.read(count) == b"x" * count
        yield
    finally:
        process.stdin.close()
        assert process.stdout.read() == b""  # all of them have ended
        process.stdout.close()
        process.wait(PATIENCE_S)


attached: list[Native] = []  # in a process of a crowd: its connection stays open as long as it is


def attach_once(server: Server, fd: int) -> Callable[[int], str]:
    """Attaches that segment, and says why that was refused."""

    def act(_: int) -> str:
        attached.append(Native(server.socket))
        return attach_segment(attached[-1], fd)

    return act


def test_processes_of_a_user_are_so_many_and_no_more(server: Server) -> None:
    fd = segment_of([allocation(1)])
    with reporting_processes(server, GREEDY, USER_PROCESSES):
        status = server.status()
        assert status["processes"] == USER_PROCESSES and status["refused_share"] == 0
        with reporting_processes(server, GREEDY, 1):
            status = server.status()
            assert status["processes"] == USER_PROCESSES and status["refused_share"] == 1
        with Crowd(GREEDY, 1, attach_once(server, fd)) as refused:
            assert refused.answers == ["your user has as many tracked processes as one may have"]
        with Crowd(OTHER, 1, attach_once(server, fd)) as other:
            assert other.answers == [""] and client_of(server, other.pids[0])
            assert_served(server, OTHER, 0)
    wait_for(lambda: not has_processes(server, GREEDY))
    with Crowd(GREEDY, 1, attach_once(server, fd)) as again:
        assert again.answers == [""]


# ---- files ----


def test_files_that_nothing_claims_are_closed(server: Server) -> None:
    """Whatever comes with a message, on either socket; an attachment takes the first two."""
    fd = segment_of([allocation(1)])
    wake = os.eventfd(0)
    null = os.open("/dev/null", os.O_RDWR)
    with Native(server.socket) as native, Original(server.legacy) as legacy:
        native.ask(GET_STATUS)
        legacy.free(0, 1)  # it is a process from now on
        legacy.sync()
        before = count_fds(server)
        for count in (1, 2, 3, 253):
            socket.send_fds(native.sock, [frame(99)], [null] * count)
            native.ask(GET_STATUS)
            socket.send_fds(native.sock, [frame(99)[:4]], [null] * count)
            native.send(frame(99)[4:])
            native.ask(GET_STATUS)
            socket.send_fds(legacy.sock, [legacy.free_message(0, 1)], [null] * count)
            legacy.sync()
        wait_for(lambda: count_fds(server) == before, "the files to be closed")
        socket.send_fds(native.sock, [frame(ATTACH)], [fd, wake, null])
        native.ask(GET_STATUS)
        assert server.status()["lives"] == 1
        wait_for(lambda: count_fds(server) == before + 2, "a pidfd and what wakes the server")
    for mine in (fd, wake, null):
        os.close(mine)


LINGER_S = 60
FILES_PER_MESSAGE = 253  # SCM_MAX_FD of the kernel


class Lingering:
    """A TCP connection whose last close() waits: of its data the other end takes nothing."""

    def __init__(self, listener: socket.socket):
        self.sock = socket.socket(socket.AF_INET)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
        self.sock.connect(listener.getsockname())
        self.other, _ = listener.accept()
        self.sock.setblocking(False)
        self.fill()

    def fill(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.send(bytes(1 << 16))


def test_files_that_are_on_their_way_to_be_closed_have_a_limit(server: Server) -> None:
    """Each takes two milliseconds, in threads for this user: a faster sender is disconnected."""
    count = (USER_FILES // FILES_PER_MESSAGE + 2) * FILES_PER_MESSAGE
    raise_fd_limit(2 * count + 200)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        files = [Lingering(listener) for _ in range(count)]
    for file in files:  # what was on its way then has arrived
        file.fill()
    before = count_fds(server)
    sender = native_of(server, GREEDY)
    sender.ask(GET_STATUS)
    server.freeze()
    for i in range(0, len(files), FILES_PER_MESSAGE):
        fds = [file.sock.fileno() for file in files[i : i + FILES_PER_MESSAGE]]
        socket.send_fds(sender.sock, [frame(99)], fds)
    for file in files:
        file.sock.close()
    start = time.monotonic()
    server.thaw()
    assert sender.wait_until_closed() == b""
    sender.close()
    is_refused = try_to_connect(server, GREEDY) is None
    if time.monotonic() - start < 0.4:  # three messages at once take half a second
        assert is_refused
    assert_served(server, OTHER, 0)
    assert server.status()["closed_garbage"] == 1
    wait_for(lambda: count_fds(server) <= before + 2, "the files to be closed")
    assert_served(server, GREEDY)
    for file in files:
        file.other.close()


# ---- segments ----

OVER_SEGMENTS = "the segments of your user take as much as those of one may"
TOO_MUCH = "its user's processes report as much as one user's may"


@pytest.mark.skipif(not LONG, reason="with TTM_LONG=1: 512 processes")
def test_a_user_has_so_much_address_space_for_segments(server: Server) -> None:
    """All processes attach the same file, which has holes where nothing is."""
    before = server.memory("VmSize")
    fd = segment_of([allocation(1)], size=SEGMENT_BYTES)
    count = USER_SEGMENT_BYTES // SEGMENT_BYTES
    with Crowd(GREEDY, count, attach_once(server, fd)) as crowd:
        assert crowd.answers == [""] * count
        with Crowd(GREEDY, 1, attach_once(server, fd)) as refused:
            assert refused.answers == [OVER_SEGMENTS]
            row = client_of(server, refused.pids[0])
            assert row and row["trouble"] == TOO_MUCH
        assert server.memory("VmSize") > before + USER_SEGMENT_BYTES
        with Crowd(OTHER, 1, attach_once(server, fd)) as other:
            assert other.answers == [""]
        assert_served(server, OTHER, 0)
    wait_for(lambda: server.memory("VmSize") < before + 8 * SEGMENT_BYTES, "the segments to go")
    with Crowd(GREEDY, 1, attach_once(server, fd)) as again:
        assert again.answers == [""]


def test_a_user_has_so_many_rings(server: Server) -> None:
    fd = segment_of([allocation(1)], rings=SEGMENT_RINGS)
    count = USER_RINGS // SEGMENT_RINGS
    with Crowd(GREEDY, count, attach_once(server, fd)) as crowd:
        assert crowd.answers == [""] * count
        with Crowd(GREEDY, 1, attach_once(server, fd)) as refused:
            assert refused.answers == [OVER_SEGMENTS]
        with Crowd(OTHER, 1, attach_once(server, fd)) as other:
            assert other.answers == [""]
        assert_served(server, OTHER, 0)
    with Crowd(GREEDY, 1, attach_once(server, fd)) as again:
        assert again.answers == [""]


# ---- answers ----

ALL_EVENTS = struct.pack("<iI", 0, 1) + bytes(128)
ALL_LIVES = bytes(8)


def test_dumps_and_checks_of_a_user_that_are_under_way_are_few(server: Server) -> None:
    """Readers that do not read; their dumps are larger than what a socket holds."""
    with legacy_of(server, GREEDY) as legacy:
        legacy.burst(30_000)
        legacy.sync()
        dumps = [native_of(server, GREEDY) for _ in range(USER_SNAPSHOTS)]
        for native in dumps:
            native.send(frame(GET_LIVES, ALL_LIVES))
            native.receive(1)
        for request in (frame(GET_LIVES, ALL_LIVES), frame(CHECK)):
            with native_of(server, GREEDY) as refused:
                refused.send(request)
                assert "under way, try again in a moment" in expect_error(refused)
        for uid in (OTHER, 0):
            with native_of(server, uid) as other:
                assert len(lives_of(other.ask(GET_LIVES, ALL_LIVES))) == (30_000 if uid == 0 else 0)
                other.ask(CHECK)
        assert_served(server, OTHER, 0)
        dumps.pop().close()
        with native_of(server, GREEDY) as again:
            wait_for(lambda: server.status()["connections"] == USER_SNAPSHOTS + 2)
            assert len(lives_of(again.ask(GET_LIVES, ALL_LIVES))) == 30_000
        for native in dumps:
            native.close()


def watch_events(server: Server, uid: int) -> Native:
    native = native_of(server, uid)
    native.send(frame(SUBSCRIBE_EVENTS, ALL_EVENTS) + frame(GET_STATUS))
    return native


def test_readers_of_events_of_a_user_are_few(server: Server) -> None:
    watching = [watch_events(server, GREEDY) for _ in range(USER_TAILS)]
    for native in watching:
        native.read_answer()
    with watch_events(server, GREEDY) as refused:
        assert expect_error(refused) == "too many are watching events already"
    for uid in (OTHER, 0):
        with watch_events(server, uid) as other:
            other.read_answer()
    assert_served(server, OTHER, 0)
    watching.pop().close()
    wait_for(lambda: server.status()["connections"] == USER_TAILS)
    with watch_events(server, GREEDY) as again:
        again.read_answer()
    for native in watching:
        native.close()


def test_root_watches_events_although_users_take_all_places(server: Server) -> None:
    watching = [watch_events(server, uid) for uid in USERS[:4] for _ in range(USER_TAILS)]
    for native in watching:
        native.read_answer()
    with watch_events(server, USERS[4]) as refused:
        assert expect_error(refused) == "too many are watching events already"
    with watch_events(server, 0) as roots:
        roots.read_answer()
    for native in watching:
        native.close()


def test_a_user_that_prints_again_and_again_keeps_no_print_of_another_back(server: Server) -> None:
    with legacy_of(server, OTHER) as other:
        for i in range(1000):
            other.kernel_load(0, 4096, i)
        other.kernel_load(0, 1, 0x5EED)  # too small to be in a print that is folded
        other.sync()
        with Crowd(GREEDY, 1, ask_for_prints_without_end(server)):
            wait_for(lambda: server.stdout.count("Per process") > 20, "prints")
            assert "0x5eed " not in server.stdout
            other.dump_kernels()
            other.sync()
            printed = server.stdout.count("Per process")
            wait_for(lambda: "0x5eed " in server.stdout, "the print")
            before_it = server.stdout.split("0x5eed ")[0].count("Per process")
            assert before_it - printed < 20  # those that were asked for before, and few others
            assert_served(server, OTHER, 0)


def ask_for_prints_without_end(server: Server) -> Callable[[int], int]:
    def ask() -> None:
        with contextlib.suppress(OSError), Original(server.legacy) as legacy:
            while True:
                legacy.send(legacy.message(DUMP_REMAINING) * 100)

    def act(_: int) -> int:
        threading.Thread(target=ask, daemon=True).start()
        return 0

    return act


@pytest.fixture
def large_answers(server: Server) -> Iterator[Server]:
    """A server whose answer to GET_TOTALS takes some 900 KB."""
    with server.client() as client:
        for device in range(1024):
            client.alloc(device, 7, device)
        client.sync()
        yield server


CONNECTIONS = 150


def ask_until_refused(native: Native) -> str:
    """The others may be answered later than this one."""
    native.send(frame(GET_TOTALS))
    while True:
        kind, payload = native.read_frame()
        if kind == ERROR:
            return payload.decode()
        if kind == END:
            native.send(frame(GET_TOTALS))


def test_answers_that_a_user_does_not_read_are_bounded(large_answers: Server) -> None:
    server = large_answers
    before = server.memory("RssAnon")
    deaf = [native_of(server, GREEDY) for _ in range(CONNECTIONS)]
    for native in deaf:
        native.send(frame(GET_TOTALS))
    with native_of(server, GREEDY) as one_more:
        assert ask_until_refused(one_more) == "too many answers wait to be read"
    assert_served(server, OTHER, 0)
    if not IS_SANITIZED:
        assert server.memory("RssAnon") < before + ANSWER_MEMORY
    for native in deaf:
        native.close()
    wait_for(lambda: server.status()["connections"] == 2)
    with native_of(server, GREEDY) as again:
        again.ask(GET_TOTALS)


def test_totals_that_a_user_subscribes_to_and_does_not_read_are_bounded(
    large_answers: Server,
) -> None:
    server = large_answers
    before = server.memory("RssAnon")
    deaf = [native_of(server, GREEDY) for _ in range(CONNECTIONS)]
    for native in deaf:
        native.send(frame(SUBSCRIBE_TOTALS, struct.pack("<II", 10, 0)))
    for native in deaf:
        native.wait_until_read()
    with native_of(server, OTHER) as other:
        for _ in range(20):
            other.ask(GET_TOTALS)
    if not IS_SANITIZED:
        assert server.memory("RssAnon") < before + ANSWER_MEMORY
    assert_served(server, OTHER, 0)
    for native in deaf:
        native.close()


def send_until_none_is_read(streams: list[Original], data: bytes) -> None:
    """Sends the same over and over on each of them, until the server reads none any more."""
    poll = select.poll()
    by_fd = {stream.sock.fileno(): stream.sock for stream in streams}
    sent = dict.fromkeys(by_fd, 0)
    for fd, sock in by_fd.items():
        sock.setblocking(False)
        poll.register(fd, select.POLLOUT)
    while ready := poll.poll(200):
        for fd, _ in ready:
            with contextlib.suppress(BlockingIOError):
                sent[fd] += by_fd[fd].send(data[sent[fd] % len(data) :])


@slow_under_sanitizers
def test_answers_of_the_original_protocol_that_a_user_does_not_read_are_bounded(
    server: Server,
) -> None:
    with legacy_of(server, OTHER) as other:
        other.sync()
        before = server.memory("RssAnon")
        deaf = [legacy_of(server, GREEDY) for _ in range(300)]
        send_until_none_is_read(deaf, deaf[0].message(QUERY) * 200)
        assert server.memory("RssAnon") < before + ANSWER_MEMORY
        other.sync()
        assert_served(server, OTHER, 0)
        for legacy in deaf:
            legacy.close()


# ---- what processes make the server keep ----


def report(
    server: Server, uid: int, make: Callable[[], int], count: int = 1, records: int = 1
) -> Crowd:
    """Processes of a user that attach a segment each, of which the server has read all records."""

    def act(number: int) -> str:
        return attach_once(server, make())(number)

    crowd = Crowd(uid, count, act)
    assert crowd.answers == [""] * count

    def are_read() -> bool:
        clients = [client for client in server.status()["clients"] if client["pid"] in crowd.pids]
        return sum(client["events"] for client in clients) == count * records

    wait_for(are_read, "the records to be read")
    return crowd


def segment_of_one() -> int:
    return segment_of([allocation(1)])


def refused_of(server: Server, crowd: Crowd) -> int:
    """How much of what its last process reports is refused; then it is not complete."""
    row = row_of(server, crowd.pids[-1])
    client = client_of(server, crowd.pids[-1])
    assert row and client and row["complete"] == (client["refused"] == 0)
    return client["refused"]


def segment_of_sets(first: int, count: int) -> Callable[[], int]:
    """Makes one with an allocation on each of so many sets of two devices, from that one on."""
    notes, records = b"", []
    for i in range(count):
        number = NOTE_FIRST + len(notes) // 8
        a, b = divmod(first + i, 1000)
        notes += note(NOTE_DEVICES, struct.pack("<HH", a, a + 1 + b % (1023 - a)))
        records.append(allocation(i + 1, devices=number))
    return lambda: segment_of(records, notes)


def test_sets_of_devices_of_a_user_are_so_many(server: Server) -> None:
    with contextlib.ExitStack() as crowds:
        for i in range(USER_DEVICE_SETS // PROCESS_DEVICE_SETS):
            sets = segment_of_sets(PROCESS_DEVICE_SETS * i, PROCESS_DEVICE_SETS)
            crowd = report(server, GREEDY, sets, records=PROCESS_DEVICE_SETS)
            assert refused_of(server, crowds.enter_context(crowd)) == 0
        with report(server, GREEDY, segment_of_sets(0, 1)) as refused:
            assert refused_of(server, refused) == 1
            assert server.status()["refused_share"] == 1
        with report(server, OTHER, segment_of_sets(5000, 10), records=10) as other:
            assert refused_of(server, other) == 0
            assert_served(server, OTHER, 0)
    sets = segment_of_sets(0, PROCESS_DEVICE_SETS)
    with report(server, GREEDY, sets, records=PROCESS_DEVICE_SETS) as again:
        assert refused_of(server, again) == 0


def test_a_set_that_was_refused_is_known_once_there_is_room(server: Server) -> None:
    with Tracked(server, uid=GREEDY) as worker:
        worker.do("alloc 0 0 1 100")

        def has_refused(count: int) -> bool:
            client = client_of(server, worker.pid)
            return client is not None and client["refused"] == count

        with contextlib.ExitStack() as crowds:
            for i in range(USER_DEVICE_SETS // PROCESS_DEVICE_SETS):
                sets = segment_of_sets(PROCESS_DEVICE_SETS * i, PROCESS_DEVICE_SETS)
                crowds.enter_context(report(server, GREEDY, sets, records=PROCESS_DEVICE_SETS))
            for times in (1, 2):
                worker.do("mesh 1 1000 3")
                wait_for(partial(has_refused, times))
            assert server.status()["refused_share"] == 2
        wait_for(lambda: server.status()["processes"] == 1)
        worker.do("mesh 1 2000 3")
        row = row_of(server, worker.pid)
        assert row and has_refused(2)
        assert [b["device_ids"] for b in row["buffers"]] == [[0], list(range(3, 11))]


def test_sets_of_devices_are_released_by_processes_that_end(server: Server) -> None:
    """More than the server has room for, over time."""
    for first in range(0, ALL_DEVICE_SETS + 1024, PROCESS_DEVICE_SETS):
        sets = segment_of_sets(first, PROCESS_DEVICE_SETS)
        with report(server, GREEDY, sets, records=PROCESS_DEVICE_SETS):
            status = server.status()
            assert status["lives"] == PROCESS_DEVICE_SETS
            assert status["refused_share"] == status["refused_device"] == 0
        wait_for(lambda: server.status()["processes"] == 0)


def test_devices_of_the_processes_of_a_user_are_so_many(server: Server) -> None:
    on_all = [allocation(i + 1, devices=i) for i in range(1024)]
    with report(server, GREEDY, lambda: segment_of(on_all), USER_DEVICES // 1024, 1024) as crowd:
        assert refused_of(server, crowd) == 0
        with report(server, GREEDY, segment_of_one) as refused:
            assert refused_of(server, refused) == 1
            assert server.status()["refused_share"] == 1
        with report(server, OTHER, segment_of_one) as other:
            assert refused_of(server, other) == 0
            assert_served(server, OTHER, 0)
    with report(server, GREEDY, segment_of_one) as again:
        assert refused_of(server, again) == 0


def test_sites_of_a_user_are_so_many(server: Server) -> None:
    count = USER_SITES // 2
    many = [allocation(i + 1, allocator=i) for i in range(count)]
    with report(server, GREEDY, lambda: segment_of(many), 2, count) as crowd:
        assert refused_of(server, crowd) == 0
        with report(server, GREEDY, segment_of_one) as refused:
            assert refused_of(server, refused) == 1
            assert server.status()["refused_share"] == 1
        with report(server, OTHER, segment_of_one) as other:
            assert refused_of(server, other) == 0
            assert_served(server, OTHER, 0)
    with report(server, GREEDY, segment_of_one) as again:
        assert refused_of(server, again) == 0


def segment_of_origins(count: int) -> Callable[[], int]:
    """Makes one whose allocations each have an origin of 82 KB: a Python stack of long names."""
    notes = note(NOTE_CODE, struct.pack("<IHH", 1, 1024, 255) + b"f" * 1024 + b"n" * 255)
    stack = NOTE_FIRST + len(notes) // 8
    notes += note(NOTE_PYTHON_STACK, struct.pack("<HH", 64, 0) + struct.pack("<II", 1024, 1) * 64)
    first = NOTE_FIRST + len(notes) // 8
    notes += note(NOTE_ORIGIN, struct.pack("<6I", 0, 0, 0, 0, stack, 0)) * count
    records = [allocation(i + 1, origin=first + 4 * i) for i in range(count)]
    return lambda: segment_of(records, notes)


def count_origins(row: dict[str, Any]) -> int:
    """Those that have a stack: one stands for none."""
    return sum(origin["python"] != [] for origin in row["origins"])


def knows_origin(server: Server, uid: int) -> bool:
    """Of a process with one allocation."""
    with report(server, uid, segment_of_origins(1)) as crowd:
        row = row_of(server, crowd.pids[0])
        return row is not None and count_origins(row) == 1


def test_text_of_the_origins_of_a_user_is_bounded(server: Server) -> None:
    """Allocations count all the same; the server only does not know where they come from."""
    most = USER_ORIGIN_BYTES // 2 // 82_000  # of one process
    before = server.memory("RssAnon")
    with report(server, GREEDY, segment_of_origins(most + 50), 2, most + 50) as crowd:
        for pid in crowd.pids:
            row = row_of(server, pid)
            assert row and most - 10 < count_origins(row) < most + 10
            assert len(row["buffers"]) == most + 50
        with report(server, GREEDY, segment_of_origins(1)) as refused:
            row = row_of(server, refused.pids[0])
            assert row and count_origins(row) == 0 and len(row["buffers"]) == 1
            client = client_of(server, refused.pids[0])
            assert client and client["notes_left_out"] == 1
        if not IS_SANITIZED:
            assert server.memory("RssAnon") < before + 2 * USER_ORIGIN_BYTES
        with report(server, OTHER, segment_of_origins(1)) as other:
            row = row_of(server, other.pids[0])
            assert row and count_origins(row) == 1
        assert_served(server, OTHER, 0)
    wait_for(lambda: knows_origin(server, GREEDY), "the text of the processes before to go")
