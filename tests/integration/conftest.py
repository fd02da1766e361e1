# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the integration tests; they live in support.py, which tests/stress shares."""

import pytest

pytest.register_assert_rewrite(
    "basics",
    "commands",
    "library",
    "native",
    "original",
    "runs",
    "servers",
    "support",
    "tracked",
    "trees",
    "workers",
)

from support import folder, make_server, server, tree  # noqa: E402, F401
