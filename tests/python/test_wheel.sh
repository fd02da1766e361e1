#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_wheel.sh SOURCE
#
# Builds the wheel with pip, as a user does, and uses it from a fresh virtual environment: the
# command, the libraries, the plugin's registration. Takes minutes and a network, so it runs with TTM_LONG=1.
set -eu

[ "${TTM_LONG:-0}" != 0 ] || {
    echo "skipped: needs TTM_LONG=1, minutes and a network"
    exit 77
}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv" || {
    echo "skipped: needs a Python with venv"
    exit 77
}
# meson-python takes what is committed; so does this.
git clone --quiet "$1" "$work/source"
"$work/venv/bin/pip" install --quiet "$work/source" pytest
cd "$work"
unset PYTHONPATH TTMEM_LIBRARY TTMEM_SOCKET LD_PRELOAD
"$work/venv/bin/tt-mem" --version
native=$("$work/venv/bin/python" -c 'import os, ttmem; print(os.path.dirname(ttmem.__file__))')/_native

# Only libraries of glibc and the compiler, which every system with ttnn has.
for file in "$native"/*; do
    needed=$(readelf -dW "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
    for library in $needed; do
        case $library in
        libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux* | libgcc_s.so.1 | libstdc++.so.6 | libttmem.so.0) ;;
        *)
            echo "$file needs $library"
            exit 1
            ;;
        esac
    done
done

"$work/venv/bin/python" - <<'P'
import ttmem

ttmem.start()
ttmem.allocate_with_context(0, 4096, "DRAM", 1, name="weights")
(buffer,) = ttmem.snapshot().buffers
assert (buffer.name, buffer.bytes) == ("weights", 4096), buffer
P
"$work/venv/bin/pytest" --help | grep -q -e --ttmem-fail-on-leak
echo "the wheel works"
