# SPDX-License-Identifier: Apache-2.0
"""The native protocol, frame by frame."""

from __future__ import annotations

import os
import struct

from original import Stream

HELLO, ERROR, END = 1, 2, 3
GET_STATUS, GET_TOTALS, GET_LIVES, CHECK, SUBSCRIBE_TOTALS, SUBSCRIBE_EVENTS = range(16, 22)
F_STATUS, F_TOTALS, F_DEVICE, F_PROCESS, F_PROCESS_DEVICE, F_SITE, F_LIVES, F_EVENTS = range(32, 40)
GET_SITES, GET_LIVES_OF = 22, 23
F_LOST, F_CHECKED, F_ORIGIN = 40, 41, 42
F_FAILURE = 44
F_SITE_SUM, F_LEFT_OUT = 45, 46
MAGIC = 0x4D4D5454


def frame(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<HHI", kind, 0, len(payload)) + payload


def hello(
    magic: int = MAGIC, major: int = 1, minor: int = 0, optional: int = 0, required: int = 0
) -> bytes:
    body = struct.pack("<IHHQQiI32s", magic, major, minor, optional, required, os.getpid(), 0, b"t")
    return frame(HELLO, body)


class Native(Stream):
    def __init__(self, path: str, greets: bool = True):
        super().__init__(path)
        if greets:
            self.send(hello())
            kind, payload = self.read_frame()
            assert kind == HELLO and struct.unpack_from("<IH", payload) == (MAGIC, 1)

    def read_frame(self) -> tuple[int, bytes]:
        kind, _, length = struct.unpack("<HHI", self.receive(8))
        return kind, self.receive(length)

    def read_answer(self) -> list[tuple[int, bytes]]:
        """Frames up to the end of one answer."""
        frames = []
        while True:
            kind, payload = self.read_frame()
            assert kind != ERROR, payload
            if kind == END:
                return frames
            frames.append((kind, payload))

    def ask(self, kind: int, payload: bytes = b"") -> list[tuple[int, bytes]]:
        self.send(frame(kind, payload))
        return self.read_answer()


def lives_of(frames: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """(id, bytes) of every life in an answer."""
    found = []
    for kind, payload in frames:
        if kind == F_LIVES:
            _, count = struct.unpack_from("<II", payload)
            for i in range(count):
                ident, _, size = struct.unpack_from("<QQQ", payload, 8 + 48 * i)
                found.append((ident, size))
    return found


def sums_of(frames: list[tuple[int, bytes]]) -> list[tuple[int, int, int]]:
    """(process, live, bytes) of every site whose sum is in an answer."""
    return [
        (*struct.unpack_from("<I", payload, 4), *struct.unpack_from("<QQ", payload, 16))
        for kind, payload in frames
        if kind == F_SITE_SUM
    ]


def left_out_of(frames: list[tuple[int, bytes]]) -> tuple[int, int, int]:
    """(sites, lives, footprint) that an answer leaves out."""
    for kind, payload in frames:
        if kind == F_LEFT_OUT:
            return struct.unpack("<QQQ", payload)
    return 0, 0, 0


def totals_of(frames: list[tuple[int, bytes]]) -> tuple[int, int]:
    """(count, bytes) over all processes, devices and regions of an answer."""
    count = size = 0
    for kind, payload in frames:
        if kind == F_PROCESS_DEVICE:
            for region in range(7):
                n, s = struct.unpack_from("<QQ", payload, 8 + 56 * region)
                count, size = count + n, size + s
    return count, size
