# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the integration tests; they live in support.py, which tests/stress shares."""

import pytest

pytest.register_assert_rewrite(
    "basics", "commands", "library", "native", "original", "servers", "support", "tracked", "workers"
)

from support import folder, make_server, server  # noqa: E402, F401
