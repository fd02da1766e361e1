# SPDX-License-Identifier: Apache-2.0
"""The names that JSON has wherever it tells of a process: in dumps, reports and what is live."""

REGIONS = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE", "CB", "KERNEL"]

PROCESS_KEYS = {
    "pid",
    "command",
    "source",
    "start_ns",
    "end_ns",
    "end",
    "exit_code",
    "signal",
    "complete",
    "history_complete",
    "why_incomplete",
    "unknown_frees",
    "lost_events",
    "devices",
    "origins",
    "marks",
    "findings",
    "failures",
}
REGION_KEYS = {
    "allocs",
    "frees",
    "remaining",
    "remaining_bytes",
    "remaining_footprint_bytes",
    "peak_bytes",
    "peak_footprint_bytes",
}
ORIGIN_KEYS = {
    "python",
    "native",
    "operation",
    "name",
    "context",
    "thread",
    "device_ids",
    "region",
    "allocs",
    "frees",
    "remaining",
    "remaining_bytes",
    "remaining_footprint_bytes",
    "first_ns",
    "last_ns",
    "sizes",
    "class",
    "suspect",
    "cause",
    "why",
    "advice",
    "holders",
    "holders_search",
}
