# SPDX-License-Identifier: Apache-2.0
"""What is live at a moment, what came since another, and blocks of code that leave nothing."""

from __future__ import annotations

import collections
import dataclasses
import gc
import linecache
import os
import stat
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from ttmem._holders import Holders

from ttmem import _server, _tell
from ttmem._limits import parse_bytes
from ttmem._text import plain, plain_lines

# Programs are kept by the runtime's own cache; what they take is not left behind by anybody.
BUFFER_REGIONS = ("DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE")
SHOWN = 10


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where allocations came from: the user's lines, innermost first, and what he said of them."""

    python: tuple[str, ...]  # "decode.py:28:cache_kv"
    operation: str
    region: str
    device_ids: tuple[int, ...]
    name: str
    context: str
    thread: str
    # A program in the program cache keeps these buffers, and no Python object does.
    is_of_program: bool = False

    @property
    def line(self) -> str:
        """The innermost line, or what else is known."""
        return self.python[0] if self.python else self.operation or "origin not known"

    @property
    def code(self) -> str:
        """The text of that line, "" where that is not at hand."""
        return _source_line(self.line)


@dataclasses.dataclass(frozen=True)
class Buffer:
    id: int
    region: str
    address: int
    device_ids: tuple[int, ...]
    bytes: int  # requested, on each device
    footprint_bytes: int  # taken, on each device
    age_ns: int
    name: str
    context: str
    origin: Origin

    @property
    def key(self) -> tuple[str, int, int]:
        return self.region, self.id, self.address


@dataclasses.dataclass(frozen=True)
class Change:
    """Allocations of one origin that came or went."""

    origin: Origin
    buffers: tuple[Buffer, ...]

    @property
    def count(self) -> int:
        return len(self.buffers)

    @property
    def bytes(self) -> int:
        return sum(buffer.bytes for buffer in self.buffers)

    @property
    def footprint_bytes(self) -> int:
        return sum(buffer.footprint_bytes for buffer in self.buffers)


def _by_origin(buffers: Iterable[Buffer]) -> list[Change]:
    groups: dict[Origin, list[Buffer]] = collections.defaultdict(list)
    for buffer in buffers:
        groups[buffer.origin].append(buffer)
    changes = [Change(origin, tuple(group)) for origin, group in groups.items()]
    return sorted(changes, key=lambda change: (-change.footprint_bytes, change.origin.line))


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What this process has live: every buffer, and the same by origin."""

    buffers: tuple[Buffer, ...]
    # By device and region, the most that was taken at once: since tracking began, or reset_peaks().
    peaks: dict[tuple[int, str], int] = dataclasses.field(default_factory=dict, compare=False)
    is_tracked: bool = True  # if not, nothing is known

    @property
    def origins(self) -> list[Change]:
        return _by_origin(self.buffers)

    def bytes_on(self, device: int, region: str | None = None) -> int:
        """What is taken on a device, in one region or in those that allocators manage."""
        regions = BUFFER_REGIONS if region is None else (region,)
        return sum(
            buffer.footprint_bytes
            for buffer in self.buffers
            if device in buffer.device_ids and buffer.region in regions
        )

    def __str__(self) -> str:
        if not self.is_tracked:
            return "not tracked: call ttmem.start(), or use `tt-mem run`"
        count, size = len(self.buffers), sum(buffer.footprint_bytes for buffer in self.buffers)
        lines = [f"{_count(count, 'allocation')} live, {human(size)}"]
        return plain_lines(lines + _describe(self.origins))


@dataclasses.dataclass(frozen=True)
class Diff:
    """From one snapshot to another: what is new, and what went, by origin."""

    new: tuple[Change, ...]
    gone: tuple[Change, ...]
    counts_program_cache: bool = False  # what cached programs have is among what is left

    @property
    def count(self) -> int:
        """Of buffers that are new, without what the program cache keeps."""
        return sum(change.count for change in self.new_buffers)

    @property
    def bytes(self) -> int:
        return sum(change.bytes for change in self.new_buffers)

    @property
    def footprint_bytes(self) -> int:
        """What new buffers take on the device where they take most."""
        return max(self.by_device().values(), default=0)

    def by_device(self) -> dict[int, int]:
        """What new buffers take on each device."""
        sums: dict[int, int] = collections.defaultdict(int)
        for change in self.new_buffers:
            for buffer in change.buffers:
                for device in buffer.device_ids:
                    sums[device] += buffer.footprint_bytes
        return dict(sorted(sums.items()))

    @property
    def new_buffers(self) -> list[Change]:
        """What is new, without what the program cache keeps, unless that is to count."""
        if self.counts_program_cache:
            return list(self.new)
        return [
            change
            for change in self.new
            if change.origin.region in BUFFER_REGIONS and not change.origin.is_of_program
        ]

    def __str__(self) -> str:
        gone = sum(change.count for change in self.gone)
        head = f"{_count(self.count, 'new buffer')}, {human(self.footprint_bytes)}; {gone} gone"
        return plain_lines([head, *_describe(self.new_buffers)])


class LeakError(AssertionError):
    """A block of code left buffers behind. 'diff' has them."""

    def __init__(self, text: str, difference: Diff):
        super().__init__(text)
        self.diff = difference


# ---- taking ----


def _origin(row: dict[str, Any], buffer: dict[str, Any]) -> Origin:
    origin = row["origins"][buffer["origin"]]
    ours = ":allocate_with_context"  # who called it is meant
    return Origin(
        python=tuple(line for line in origin["python"] if not line.endswith(ours)),
        operation=origin["operation"],
        region=buffer["region"],
        device_ids=tuple(buffer["device_ids"]),
        name=buffer["name"],
        context=buffer["context"],
        thread=origin["thread"],
        is_of_program=origin["class"] == "program_cache",
    )


def _buffer(row: dict[str, Any], buffer: dict[str, Any]) -> Buffer:
    return Buffer(
        id=buffer["id"],
        region=buffer["region"],
        address=buffer["address"],
        device_ids=tuple(buffer["device_ids"]),
        bytes=buffer["bytes"],
        footprint_bytes=buffer["footprint_bytes"],
        age_ns=buffer["age_ns"],
        name=buffer["name"],
        context=buffer["context"],
        origin=_origin(row, buffer),
    )


def snapshot() -> Snapshot:
    """
    What this process has live now. Asks the server that tracks it, and starts one when there is
    none; raises Inactive when that cannot be done. Empty when the process is not tracked.
    """
    if not _tell.is_active():
        return Snapshot((), is_tracked=False)
    row = _server.row_of_this_process()
    if row is None:
        return Snapshot(())
    peaks = {
        (device["id"], region): totals["peak_footprint_bytes"]
        for device in row["devices"]
        for region, totals in device["regions"].items()
    }
    return Snapshot(tuple(_buffer(row, buffer) for buffer in row["buffers"]), peaks)


def diff(before: Snapshot, after: Snapshot, count_program_cache: bool = False) -> Diff:
    """
    What came and what went from one snapshot to the other. What programs in the program cache have
    (circular buffers, kernels, tensors that they keep) is listed, and counted only if asked for.
    """
    old = {buffer.key for buffer in before.buffers}
    now = {buffer.key for buffer in after.buffers}
    return Diff(
        new=tuple(_by_origin(buffer for buffer in after.buffers if buffer.key not in old)),
        gone=tuple(_by_origin(buffer for buffer in before.buffers if buffer.key not in now)),
        counts_program_cache=count_program_cache,
    )


def report() -> str:
    """What is live now, by origin, as text."""
    return str(snapshot())


# ---- telling ----


def human(size: int) -> str:
    """As the commands write it."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            digits = 0 if unit == "B" or value >= 100 else 1
            return f"{value:.{digits}f} {unit}"
        value /= 1024
    raise AssertionError


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


_SOURCE_MAX = 4 << 20  # bytes; a larger file is no source that a person wrote


def _has_source(path: str) -> bool:
    """
    True if linecache may read that file: it would wait for a FIFO. The modules are those of this
    process, so its own rights to read them are enough.
    """
    if path in linecache.cache:
        return True
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _SOURCE_MAX


def _source_line(where: str) -> str:
    """
    Of "decode.py:28:cache_kv"; the file is looked for among the modules of this process, and among
    the texts that are no files: the cells of a notebook.
    """
    parts = where.split(":")
    if len(parts) < 3 or not parts[1].isdigit():
        return ""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for path in [*files, *linecache.cache]:
        if isinstance(path, str) and os.path.basename(path) == parts[0] and _has_source(path):
            line = linecache.getline(path, int(parts[1])).strip()
            if line:
                return line
    return ""


def _by_line(changes: list[Change]) -> list[Change]:
    """Those of one line together, however it was reached."""
    groups: dict[tuple[str | bool, ...], list[Change]] = collections.defaultdict(list)
    for change in changes:
        o = change.origin
        groups[o.line, o.operation, o.region, o.name, o.context, o.is_of_program].append(change)
    merged = [
        Change(group[0].origin, tuple(b for change in group for b in change.buffers))
        for group in groups.values()
    ]
    return sorted(merged, key=lambda change: -change.footprint_bytes)


def _describe_one(change: Change) -> str:
    origin = change.origin
    file, _, function = origin.line.rpartition(":")
    words = [f"{file} {function}" if file else origin.line, origin.code, origin.operation]
    words += [origin.region, origin.name, origin.context]
    if origin.is_of_program:
        words.append("kept by the program cache")
    times = f"{change.count}×, " if change.count > 1 else ""
    words.append(f"{times}{human(change.footprint_bytes)}")
    return "  ".join(word for word in words if word)


def _callers(origin: Origin) -> list[str]:
    """A line in a helper says little without who called it."""
    lines = []
    for where in origin.python[1:4]:
        if where.endswith(":pytest_pyfunc_call"):  # below it all is pytest's own
            break
        code = _source_line(where)
        file, _, function = where.rpartition(":")
        if code:
            lines.append(f"    from {file} {function}  {code}")
    return lines


def _describe(changes: list[Change]) -> list[str]:
    changes = _by_line(changes)
    lines = [f"  {_describe_one(change)}" for change in changes[:SHOWN]]
    if len(changes) > SHOWN:
        lines.append(f"  … and {_count(len(changes) - SHOWN, 'other origin')}")
    return lines


def _held_by(found: list[Holders]) -> list[str]:
    """What holds the buffers of one line."""
    texts = dict.fromkeys(str(holder) for some in found for holder in some)
    lines = [f"  held by: {text}" for text in list(texts)[:3]]
    if any(some.search != "done" for some in found):
        lines.append("  search for holders not finished")
    return lines or ["  held by: no Python object that can be seen"]


def _is_of_program(change: Change) -> bool:
    return change.origin.is_of_program or change.origin.region not in BUFFER_REGIONS


def _describe_held(changes: list[Change]) -> list[str]:
    """From which line, and held by whom."""
    from ttmem import _holders

    # Of one line, one buffer is as good as another. What a cached program has, no object holds.
    some = [[] if _is_of_program(change) else change.buffers[:3] for change in changes[:SHOWN]]
    places = [(buffer.address, buffer.region) for buffers in some for buffer in buffers]
    found = iter(_holders.who_holds_each(places))
    lines = []
    for change, buffers in zip(changes, some, strict=False):
        if _is_of_program(change):
            held = ["  held by: the program cache, until device.clear_program_cache()"]
        else:
            held = _held_by([next(found) for _ in buffers])
        lines += [f"  {_describe_one(change)}", *_callers(change.origin), *held]
    if len(changes) > SHOWN:
        lines.append(f"  … and {_count(len(changes) - SHOWN, 'other origin')}")
    return lines


def describe_leak(who: str, difference: Diff, limit: int = 0) -> str:
    """The text of a failure: how much, from which line, held by whom."""
    on = ", ".join(f"{human(size)} on device {d}" for d, size in difference.by_device().items())
    noun = "allocation" if difference.counts_program_cache else "buffer"
    lines = [
        f"device memory: {who} left {_count(difference.count, noun)} behind "
        f"({human(difference.bytes)} requested, {on})"
        + (f", the limit is {human(limit)}" if limit else "")
    ]
    return plain_lines(lines + _describe_held(_by_line(difference.new_buffers)))


def describe_growth(
    who: str, difference: Diff, known: dict[str, tuple[int, int]], grown: list[str]
) -> str:
    """The same for what a baseline knows less of."""
    from ttmem import _baseline

    lines = [f"device memory: {who} left more behind than its baseline knows of"]
    left = _baseline.left_of(difference.new_buffers)
    for key in grown:
        count, size = left[key]
        old_count, old_size = known.get(key, (0, 0))
        lines.append(
            f"  +{human(size - old_size)}: {_count(count, 'buffer')}, {human(size)}, "
            f"and not {old_count}, {human(old_size)}"
        )
        of_key = [c for c in difference.new_buffers if _baseline.origin_key(c) == key]
        lines += _describe_held(_by_line(of_key))
    return plain_lines(lines)


def describe_peak(who: str, taken: dict[tuple[int, str], int], limit: int) -> str:
    """The text of a failure: how much more there was for a while than the limit allows."""
    (device, region), most = max(taken.items(), key=lambda row: row[1])
    return plain(
        f"device memory: {who} took {human(most)} of {region} on device {device}, "
        f"the limit is {human(limit)}"
    )


def taken_since(before: Snapshot, after: Snapshot) -> dict[tuple[int, str], int]:
    """
    By device and region, what was taken at most above what was live before; reset_peaks() was
    called just before that.
    """
    return {
        (device, region): peak - before.bytes_on(device, region)
        for (device, region), peak in after.peaks.items()
        if region in BUFFER_REGIONS
    }


def left_since(
    before: Snapshot,
    limit: int,
    after: Snapshot | None = None,
    count_program_cache: bool = False,
) -> Diff | None:
    """
    What is new since then, when it takes more than that on some device. Objects that only wait
    for Python's collector are collected first: they are late and not lost.
    """
    difference = diff(before, after or snapshot(), count_program_cache)
    if difference.footprint_bytes <= limit:
        return None
    gc.collect()
    difference = diff(before, snapshot(), count_program_cache)
    return difference if difference.footprint_bytes > limit else None


class no_leaks:  # noqa: N801, it is used like a function
    """
    `with ttmem.no_leaks(limit=0):` raises LeakError when the block leaves more than that many
    bytes (footprint, on any device; "10 MB" is fine) behind. What the block itself raises passes
    on. Does nothing where nothing is tracked. What the program cache keeps does not count, unless
    'count_program_cache' says so.
    """

    def __init__(self, limit: int | str = 0, count_program_cache: bool = False):
        self._limit = parse_bytes(limit)
        self._count_program_cache = count_program_cache
        self._before: Snapshot | None = None

    def __enter__(self) -> no_leaks:
        self._before = snapshot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True  # pytest shows the block
        before, self._before = self._before, None
        if kind is not None or before is None or not before.is_tracked:
            return
        left = left_since(before, self._limit, count_program_cache=self._count_program_cache)
        if left is not None:
            raise LeakError(describe_leak("the block", left), left)
