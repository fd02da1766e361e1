# SPDX-License-Identifier: Apache-2.0
"""The command tt-mem, as the wheel brings it."""

from __future__ import annotations

import os
import sys

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native", "tt-mem")


def main() -> None:
    try:
        os.execv(NATIVE, ["tt-mem", *sys.argv[1:]])
    except OSError as failure:
        sys.exit(f"tt-mem: cannot start '{NATIVE}': {failure.strerror}")
