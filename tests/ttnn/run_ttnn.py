# SPDX-License-Identifier: Apache-2.0
"""Runs files of tests with the ttnn for one version of Python, or is skipped (77) and says why.

usage: run_ttnn.py PYTHON_VERSION RUN_PYTEST FILE…
"""

import os
import sys

import provision

try:
    os.environ["TTNN_PYTHON"] = str(provision.environment(sys.argv[1]))
except provision.Unavailable as reason:
    print(f"skipped: {reason}")
    sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
