# SPDX-License-Identifier: Apache-2.0
"""The tests of the package use the servers and commands of the integration tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
pytest.register_assert_rewrite("basics", "commands", "servers", "support", "tracked", "scripts")

from support import folder, make_server, server  # noqa: E402, F401
