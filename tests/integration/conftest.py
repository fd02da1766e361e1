# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the integration tests; they live in support.py, which tests/stress shares."""

import pytest

pytest.register_assert_rewrite(
    "basics",
    "browser",
    "commands",
    "containers",
    "library",
    "native",
    "old_logs",
    "original",
    "pages",
    "runs",
    "servers",
    "support",
    "tracked",
    "trees",
    "workers",
)

from skips import pytest_sessionfinish  # noqa: E402, F401
from support import folder, make_server, server, small_disk, tree  # noqa: E402, F401
