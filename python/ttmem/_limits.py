# SPDX-License-Identifier: Apache-2.0
"""What a test may take and leave, as its marks say it."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}

# Name and arguments of each mark, for `pytest --markers`.
MARKS = {
    "device_memory": "device_memory(leaks=None, peak=None, warmups=0): the test may leave "
    "'leaks' behind on a device and take 'peak' of a region above what was live when it began "
    "('10 MB', '2 KiB' or bytes); its body runs 'warmups' times first, which do not count",
    "ttmem": "ttmem(limit=0): as device_memory(leaks=limit)",
    "limit_leaks": "limit_leaks(limit, warmups=0): as device_memory(leaks=limit)",
    "limit_memory": "limit_memory(limit): as device_memory(peak=limit)",
}
ALIASES = ("limit_leaks", "limit_memory")  # of pytest-memray, where they speak of the host's memory


class Limits(NamedTuple):
    leaks: int | None = None  # None: nobody asked
    peak: int | None = None
    warmups: int = 0

    @property
    def are_any(self) -> bool:
        return self.leaks is not None or self.peak is not None


def parse_bytes(limit: Any) -> int:
    """1024, "1024", "10 MB", "2 KiB". Raises ValueError."""
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise ValueError(f"{limit!r} is no number of bytes")
    number, unit = str(limit).strip(), "B"
    for candidate in sorted(UNITS, key=len, reverse=True):
        if number.upper().endswith(candidate):
            number, unit = number[: -len(candidate)], candidate
            break
    try:
        size = int(float(number) * UNITS[unit])
    except (ValueError, OverflowError):
        raise ValueError(f"{limit!r} is no number of bytes") from None
    if size < 0:
        raise ValueError(f"{limit!r} is no number of bytes")
    return size


def _optional(limit: Any) -> int | None:
    return None if limit is None else parse_bytes(limit)


def _count(warmups: Any) -> int:
    if not isinstance(warmups, int) or warmups < 0:
        raise ValueError(f"{warmups!r} is no number of warm-ups")
    return int(warmups)  # True is one


def _device_memory(leaks: Any = None, peak: Any = None, warmups: Any = 0) -> Limits:
    return Limits(_optional(leaks), _optional(peak), _count(warmups))


def _ttmem(limit: Any = 0) -> Limits:
    return Limits(leaks=parse_bytes(limit))


def _limit_leaks(limit: Any = 0, filter_fn: Any = None, warmups: Any = 0) -> Limits:
    return Limits(leaks=parse_bytes(limit), warmups=_count(warmups))


def _limit_memory(limit: Any, current_thread_only: Any = False) -> Limits:
    return Limits(peak=parse_bytes(limit))


_READERS: dict[str, Callable[..., Limits]] = {
    "device_memory": _device_memory,
    "ttmem": _ttmem,
    "limit_leaks": _limit_leaks,
    "limit_memory": _limit_memory,
}


def read_mark(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Limits:
    """Raises ValueError when it says something else than numbers."""
    try:
        return _READERS[name](*args, **kwargs)
    except TypeError as failure:  # "_ttmem() got an unexpected keyword argument 'limits'"
        reason = str(failure).partition("() ")[2] or str(failure)
    form = MARKS[name].partition(": ")[0]
    raise ValueError(f"pytest.mark.{name} {reason}; it is {form}")


def combine(found: list[Limits]) -> Limits:
    """Of several marks each says what it says, the nearest first."""
    return Limits(
        next((limits.leaks for limits in found if limits.leaks is not None), None),
        next((limits.peak for limits in found if limits.peak is not None), None),
        max((limits.warmups for limits in found), default=0),
    )
