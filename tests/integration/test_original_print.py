# SPDX-License-Identifier: Apache-2.0
"""DUMP_REMAINING and DUMP_KERNELS: what a client asks for is printed on the server's stdout."""

import os
import re

import pytest
from support import (
    DISPATCH,
    DUMP_REMAINING,
    FABRIC,
    L1,
    LAYOUTS,
    PATIENCE_S,
    Server,
    pack,
    wait_for,
)

layouts = pytest.mark.parametrize("layout", LAYOUTS)


def wait_for_print(server: Server, ending: str) -> str:
    """A print ends with its list of processes, or is one line that says that nothing remains."""
    wait_for(lambda: ending in server.stdout, f"'{ending}' on the server's stdout")
    return server.stdout


@layouts
def test_dump_remaining_prints_what_is_allocated(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 256 << 10, 0xABC000)
        client.alloc(3, 32 << 10, 0xDEF000, L1)
        client.cb_alloc(0, 4096, 0x18B20)
        client.kernel_load(0, 8192, 0x77, FABRIC)
        client.dump_remaining()
        client.sync()
        text = wait_for_print(server, "Per process")
        assert re.search(r"^device 0", text, re.MULTILINE)
        assert re.search(r"^device 3", text, re.MULTILINE)
        for row in (r"256 KiB +0xabc000", r"32.0 KiB +0xdef000", r"4.0 KiB +0x18b20"):
            assert re.search(rf"{os.getpid()} .*{row}", text), text
        assert "Most Common Buffer Sizes" in text
        assert "fabric kernel" in text
        assert "\033" not in text


@layouts
def test_dump_kernels_prints_kernels_by_kind(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 1 << 20, 0xABC000)
        for i in range(20):
            client.kernel_load(0, 1024 * (i + 1), 0x100 + i)
        client.kernel_load(0, 56 << 10, 0x200, FABRIC)
        client.kernel_load(0, 46 << 10, 0x300, DISPATCH)
        client.dump_kernels()
        client.sync()
        text = wait_for_print(server, "Per process")
        assert "application 210 KiB" in text
        assert "fabric 56.0 KiB" in text
        assert "dispatch 46.0 KiB" in text
        for i in range(20):  # all of them, unfolded
            assert f" {0x100 + i:#x}  application kernel" in text
        assert "0xabc000" not in text


def test_dump_says_plainly_that_nothing_remains(server: Server) -> None:
    with server.client() as client:
        client.dump_remaining()
        client.sync()
        assert "nothing remains: no device memory is allocated" in wait_for_print(server, "up")
        client.dump_kernels()
        wait_for_print(server, "no kernel is allocated")


@layouts
def test_the_state_of_the_moment_is_printed_even_if_the_client_exits_at_once(
    server: Server, layout: int
) -> None:
    worker = server.worker(layout)
    pid = worker.pid
    server.freeze()  # so that the client is gone before the server hears a word
    worker.burst(100, 4096)
    worker.dump_remaining()
    worker.kill()
    server.thaw()
    text = wait_for_print(server, "Per process")
    assert re.search(rf"{pid} +400 KiB +100 allocations", text), text
    wait_for(lambda: server.status()["lives"] == 0)


def test_the_print_is_of_the_moment_of_asking_and_not_of_a_later_one(server: Server) -> None:
    with server.client() as client:
        server.freeze()
        client.alloc(0, 111 << 10, 1)
        client.dump_remaining()
        client.free(0, 1)
        client.alloc(0, 222 << 10, 2)
        server.thaw()
        client.sync()
        text = wait_for_print(server, "Per process")
        assert "111 KiB" in text and "222 KiB" not in text


def test_nothing_hangs_when_nobody_reads_stdout(make_server) -> None:
    server = make_server()
    read_end, write_end = os.pipe()
    try:
        server.start(stdout=write_end)
        with server.client() as client, server.worker() as worker:
            # A kernel dump lists everything, so each is far more than the 64 KiB of a pipe.
            for i in range(3000):
                client.kernel_load(0, 1024, i)
            for _ in range(20):
                client.dump_kernels()
                client.dump_remaining()
                client.sync()
            worker.burst(20000, first=1 << 20)
            worker.sync()
            assert client.query()["dram_allocated"] == 20000
            assert server.check()["lives"] == 23000
        server.stop()
    finally:
        os.close(read_end)
        os.close(write_end)


def test_it_stops_although_a_short_print_hangs_on_stdout(make_server) -> None:
    server = make_server()
    read_end, write_end = os.pipe()
    try:
        os.set_blocking(write_end, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(write_end, b"x" * 4096)
        os.set_blocking(write_end, True)
        server.start(stdout=write_end)
        with server.client() as client:
            client.alloc(0, 1, 1)
            client.dump_remaining()
            client.sync()
            # The printer has fetched what it is to print, and from then on waits for the pipe.
            wait_for(lambda: server.status()["connections"] == 3)
        server.stop()
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_reader_of_stdout_that_leaves_hurts_nobody(make_server) -> None:
    server = make_server()
    read_end, write_end = os.pipe()
    server.start(stdout=write_end)
    os.close(write_end)
    os.close(read_end)
    with server.client() as client:
        client.alloc(0, 5, 5)
        for _ in range(5):
            client.dump_remaining()
            client.sync()
        assert client.query()["dram_allocated"] == 5
        server.check()


def test_a_tool_that_only_asks_and_leaves_needs_no_answer(server: Server) -> None:
    """dump_remaining_buffers.py of the original: connects, sends 72 bytes, closes."""
    with server.client() as client:
        client.alloc(0, 4096, 0x1234)
        client.sync()
        with server.client(72) as tool:
            tool.send(pack(72, type=DUMP_REMAINING))
        assert "0x1234" in wait_for_print(server, "Per process")


def test_stdout_that_is_full_is_survived(make_server) -> None:
    server = make_server()
    with open("/dev/full", "wb") as full:
        server.start(stdout=full)
    with server.client() as client:
        client.alloc(0, 4096, 1)
        client.dump_remaining()
        client.sync()
        wait_for(lambda: "cannot print" in server.stderr, "a line about it")
        assert client.query()["dram_allocated"] == 4096


def test_stdout_that_is_closed_is_survived(make_server) -> None:
    server = make_server()
    server.start(prepare=lambda: os.close(1))
    with server.client() as client:
        client.alloc(0, 4096, 1)
        client.dump_remaining()
        assert client.query()["dram_allocated"] == 4096
    server.check()


def test_every_print_that_was_asked_for_comes(server: Server) -> None:
    with server.client() as client:
        for i in range(1, 4):
            client.alloc(0, i << 20, i)
            client.dump_remaining()
        client.sync()
        wait_for(lambda: server.stdout.count("Per process") == 3, "three prints", PATIENCE_S)

