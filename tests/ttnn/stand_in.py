# SPDX-License-Identifier: Apache-2.0
"""A kernel compiler for mock devices, on which no kernel ever runs.

The wheel of ttnn has no RISC-V compiler. TT-Metal calls one, loads the ELF file that it made, and
measures it. This one makes the same small ELF file whatever it is asked to compile: two
instructions, a symbol and a relocation, which is all that TT-Metal insists on.
"""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

BASE = 0x10000  # where the text lies in memory; the entry point has to be its very first byte
TEXT_OFFSET = 0x1000
NOP, JUMP_BACK = 0x00000013, 0xFFDFF06F
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 1, 2, 3, 4
R_RISCV_JAL = 17
TOOLS = ("g++", "gcc", "objcopy", "nm", "ar")


@dataclasses.dataclass
class Section:
    name: str
    kind: int
    contents: bytes
    flags: int = 0
    address: int = 0
    link: int = 0
    info: int = 0
    entry_size: int = 0
    offset: int = 0


def elf_file() -> bytes:
    """An executable for 32-bit RISC-V with a single segment: a second one is refused."""
    text = struct.pack("<II", NOP, JUMP_BACK)
    start_symbol = struct.pack("<IIIBBH", 1, BASE, len(text), 0x12, 0, 1)
    sections = [
        Section(".text", SHT_PROGBITS, text, flags=6, address=BASE),
        Section(
            ".rela.text",
            SHT_RELA,
            struct.pack("<IIi", BASE + 4, 1 << 8 | R_RISCV_JAL, 0),
            flags=0x40,
            link=3,
            info=1,
            entry_size=12,
        ),
        Section(".symtab", SHT_SYMTAB, bytes(16) + start_symbol, link=4, info=1, entry_size=16),
        Section(".strtab", SHT_STRTAB, b"\0_start\0"),
    ]
    names = b"\0" + b"".join(s.name.encode() + b"\0" for s in sections) + b".shstrtab\0"
    sections.append(Section(".shstrtab", SHT_STRTAB, names))

    image = bytearray(TEXT_OFFSET)
    for section in sections:
        section.offset = len(image)
        image += section.contents
        image += bytes(-len(image) % 16)
    table_offset = len(image)
    image += bytes(40)  # the section that is none
    for section in sections:
        image += struct.pack(
            "<10I",
            names.index(b"\0" + section.name.encode() + b"\0") + 1,
            section.kind,
            section.flags,
            section.address,
            section.offset,
            len(section.contents),
            section.link,
            section.info,
            4,
            section.entry_size,
        )
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    executable, riscv = 2, 243
    header = struct.pack(
        "<16sHHIIIIIHHHHHH",
        *(ident, executable, riscv, 1, BASE, 52, table_offset, 0),
        *(52, 32, 1, 40, len(sections) + 1, len(sections)),
    )
    load, read_execute = 1, 5
    segment = struct.pack(
        "<8I", load, TEXT_OFFSET, BASE, BASE, len(text), len(text), read_execute, 4
    )
    image[: len(header) + len(segment)] = header + segment
    return bytes(image)


# Everything it needs lies beside it. sh and not Python, as it is started thousands of times.
SCRIPT = """\
#!/bin/sh
case ${1-} in
--version)
    echo 'riscv-tt-elf-g++ 15.1.0 (stand-in)'
    exit 0
    ;;
esac
source_file=none
while [ $# -gt 0 ]; do
    case $1 in
    -o) result=$2; shift ;;
    -MF) dependencies=$2; shift ;;
    *.c | *.cc | *.cpp | *.S) source_file=$1 ;;
    esac
    shift
done
[ -z "${result-}" ] || cp "${0%/*}/kernel.elf" "$result"
[ -z "${dependencies-}" ] || echo "${result-none}: $source_file" >"$dependencies"
"""


def install(ttnn_folder: Path) -> None:
    """Puts the compiler where the ttnn in that folder looks for one."""
    folder = ttnn_folder / "runtime" / "sfpi" / "compiler" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.elf").write_bytes(elf_file())
    for tool in TOOLS:
        path = folder / f"riscv-tt-elf-{tool}"
        path.write_text(SCRIPT)
        path.chmod(0o755)
