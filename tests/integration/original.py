# SPDX-License-Identifier: Apache-2.0
"""The original protocol: a stand-in of its client and monitor, in each of the three layouts."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
import time
from typing import TYPE_CHECKING, Any

from basics import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from servers import Server

ALLOC, FREE, QUERY, RESPONSE = 1, 2, 3, 4
DUMP_REMAINING, DEVICE_INFO_QUERY, DEVICE_INFO_RESPONSE = 5, 6, 7
CB_ALLOC, CB_FREE, KERNEL_LOAD, KERNEL_UNLOAD, DUMP_KERNELS = 8, 9, 10, 11, 12

DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE = 0, 1, 2, 3, 4
APPLICATION, FABRIC, DISPATCH = 0, 1, 2

LAYOUTS = (72, 112, 144)

_CORE = (
    "type device_id size buffer_type process_id buffer_id timestamp "
    "dram_allocated l1_allocated l1_small_allocated trace_allocated"
).split()
_PROGRAM = "cb_allocated kernel_allocated".split()
_INFO = (
    "total_dram_size total_l1_size arch_type num_dram_channels dram_size_per_channel "
    "l1_size_per_core is_available num_devices"
).split()
_RING = "ringbuffer_total_size ringbuffer_used_bytes ringbuffer_num_programs pad3".split()

# As the C structs were: packed, with their explicit padding, in the byte order of the machine.
STRUCTS = {
    72: (struct.Struct("<B3xiQB3xiQQ4Q"), _CORE),
    112: (struct.Struct("<B3xiQB3xiQQ4Q2Q6I"), _CORE + _INFO),
    144: (struct.Struct("<B3xiQB3xiQQ4Q2Q2Q6I4I"), _CORE + _PROGRAM + _INFO + _RING),
}
for _size, (_struct, _names) in STRUCTS.items():
    assert _struct.size == _size


def pack(layout: int, **fields: int) -> bytes:
    """One message; what is not named is zero, what the layout does not have is refused."""
    form, names = STRUCTS[layout]
    unknown = set(fields) - set(names)
    assert not unknown, f"the {layout}-byte layout has no {unknown}"
    return form.pack(*(fields.get(name, 0) for name in names))


def unpack(layout: int, data: bytes) -> dict[str, int]:
    form, names = STRUCTS[layout]
    return dict(zip(names, form.unpack(data)))


class Closed(Exception):
    """The server has closed the connection."""


SIOCOUTQ = termios.TIOCOUTQ


class Stream:
    """A connection, with what tests want to know of it."""

    def __init__(self, path: str):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)  # waits where the queue is full
        self.sock.settimeout(PATIENCE_S)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                piece = self.sock.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed(f"after {len(data)} of {size} bytes")
            data += piece
        return data

    def unread_bytes(self) -> int:
        """What we sent and the server has not yet taken (with the kernel's own overhead)."""
        answer = fcntl.ioctl(self.sock, SIOCOUTQ, struct.pack("i", 0))
        return struct.unpack("i", answer)[0]

    def wait_until_read(self) -> None:
        wait_for(lambda: self.unread_bytes() == 0, "the server to read")

    def wait_until_closed(self) -> bytes:
        """Returns what still came before the end."""
        data = b""
        while True:
            try:
                piece = self.sock.recv(65536)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Original(Stream):
    """The original client and monitor, as they were."""

    def __init__(self, path: str, layout: int = 144, claimed_pid: int | None = None):
        super().__init__(path)
        self.layout = layout
        self.claimed_pid = os.getpid() if claimed_pid is None else claimed_pid

    def message(self, kind: int, **fields: int) -> bytes:
        return pack(self.layout, type=kind, **fields)

    def say(self, kind: int, **fields: int) -> None:
        self.send(self.message(kind, **fields))

    def alloc_message(
        self, device: int, size: int, ident: int, region: int = DRAM, **info: int
    ) -> bytes:
        return self.message(
            ALLOC,
            device_id=device,
            size=size,
            buffer_type=region,
            process_id=self.claimed_pid,
            buffer_id=ident,
            timestamp=time.time_ns(),
            **info,
        )

    def free_message(self, device: int, ident: int) -> bytes:
        return self.message(FREE, device_id=device, process_id=self.claimed_pid, buffer_id=ident)

    def alloc(self, device: int, size: int, ident: int, region: int = DRAM, **info: int) -> None:
        self.send(self.alloc_message(device, size, ident, region, **info))

    def free(self, device: int, ident: int) -> None:
        self.send(self.free_message(device, ident))

    def _program(self, kind: int, device: int, size: int, ident: int, flavour: int = 0) -> None:
        is_birth = kind in (CB_ALLOC, KERNEL_LOAD)
        self.say(
            kind,
            device_id=device,
            size=size,
            buffer_type=flavour,
            process_id=self.claimed_pid,
            buffer_id=ident,
            timestamp=time.time_ns() if is_birth else 0,
        )

    def cb_alloc(self, device: int, size: int, ident: int) -> None:
        self._program(CB_ALLOC, device, size, ident)

    def cb_free(self, device: int, size: int, ident: int) -> None:
        self._program(CB_FREE, device, size, ident)

    def kernel_load(self, device: int, size: int, ident: int, kind: int = APPLICATION) -> None:
        self._program(KERNEL_LOAD, device, size, ident, kind)

    def kernel_unload(self, device: int, size: int, ident: int, kind: int = APPLICATION) -> None:
        self._program(KERNEL_UNLOAD, device, size, ident, kind)

    def read_answer(self) -> dict[str, int]:
        return unpack(self.layout, self.receive(self.layout))

    def query(self, device: int = 0) -> dict[str, int]:
        self.say(QUERY, device_id=device)
        answer = self.read_answer()
        assert answer["type"] == RESPONSE and answer["device_id"] == device, answer
        return answer

    def device_info(self, device: int = -1) -> dict[str, int]:
        self.say(DEVICE_INFO_QUERY, device_id=device)
        answer = self.read_answer()
        assert answer["type"] == DEVICE_INFO_RESPONSE and answer["device_id"] == device, answer
        return answer

    def sync(self) -> None:
        """Returns when the server has applied all that was said on this connection."""
        self.query()

    def dump_remaining(self) -> None:
        self.say(DUMP_REMAINING)

    def dump_kernels(self) -> None:
        self.say(DUMP_KERNELS)

    def burst(self, count: int, size: int = 1, first: int = 1, device: int = 0) -> None:
        """That many allocations in few writes."""
        step = 1000
        for start in range(first, first + count, step):
            self.send(
                b"".join(
                    self.alloc_message(device, size, ident)
                    for ident in range(start, min(start + step, first + count))
                )
            )

    def alloc_everywhere(self, region: int, size: int) -> None:
        """One allocation on each device that there can be."""
        for device in range(1024):
            self.alloc(device, size, region + 1, region)


def pass_time_of_silence(server: Server) -> None:
    """
    Returns when every connection that was silent before the call has been silent for the 20 ms
    after which the server settles a doubt: deadlines are kept in order, and ours is the last.
    """
    with server.client(72) as clock:
        clock.query()
