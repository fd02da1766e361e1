# SPDX-License-Identifier: Apache-2.0
"""
Runs one file of tests, or says that pytest is missing and is skipped (77). A test that takes as
long as all of them should says where it stands, for it will not be asked when time is up.
"""

import importlib.util
import os
import sys

if importlib.util.find_spec("pytest") is None:
    print("skipped: needs pytest (Debian: python3-pytest)")
    sys.exit(77)
patience_s = 0 if os.environ.get("TTM_LONG") else 100
sys.stdout.flush()
os.execv(
    sys.executable,
    [
        sys.executable,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o"),
        f"faulthandler_timeout={patience_s}",
        *sys.argv[1:],
    ],
)
