#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_wheel.sh SOURCE
#
# Builds the wheel with pip, as a user does, and uses it from fresh virtual environments: the command,
# the libraries, the plugin's registration; and beside a real ttnn, where one can be had, the leak of
# examples/python named with its holder, and its tests. Takes minutes and a network, so it runs with
# TTM_LONG=1.
set -eu

[ "${TTM_LONG:-0}" != 0 ] || {
    echo "skipped: needs TTM_LONG=1, minutes and a network"
    exit 77
}
python=${PYTHON:-python3}
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH TTMEM_LIBRARY TTMEM_SOCKET LD_PRELOAD
export PYTHONDONTWRITEBYTECODE=1 XDG_RUNTIME_DIR="$work"

fail() {
    echo "$*"
    exit 1
}

# install PYTHON VENV: what is committed, as meson-python takes it, into a new environment.
install() {
    "$1" -m venv "$2"
    [ -d "$work/source" ] || git clone --quiet "$source" "$work/source"
    "$2/bin/pip" install --quiet "$work/source" pytest pytest-xdist
}

"$python" -m venv "$work/probe" 2>/dev/null || {
    echo "skipped: needs a Python with venv"
    exit 77
}
install "$python" "$work/venv"
cd "$work"
"$work/venv/bin/tt-mem" --version
native=$("$work/venv/bin/python" -c 'import os, ttmem; print(os.path.dirname(ttmem.__file__))')/_native

# Built with one version of Python, it is for the later ones as well.
grep -q '^Tag: cp3[0-9]*-abi3-linux' "$work"/venv/lib/python3*/site-packages/ttmem-*.dist-info/WHEEL ||
    fail "the wheel is for one version of Python alone"

# Only libraries of glibc and the compiler, which every system with ttnn has.
for file in "$native"/*; do
    needed=$(readelf -dW "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
    for library in $needed; do
        case $library in
        libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux* | libgcc_s.so.1 | libstdc++.so.6 | libttmem.so.0) ;;
        *) fail "$file needs $library" ;;
        esac
    done
done

"$work/venv/bin/python" - <<'P'
import ttmem

ttmem.start()
assert type(ttmem._library._loaded).__name__ == "module", ttmem._library._loaded
ttmem.allocate_with_context(0, 4096, "DRAM", 1, name="weights")
(buffer,) = ttmem.snapshot().buffers
assert (buffer.name, buffer.bytes) == ("weights", 4096), buffer
P
"$work/venv/bin/pytest" --help | grep -q -e --ttmem-fail-on-leak
echo "the wheel works"

# Of a real ttnn, only its own files and those of what it needs are lent to the new environment.
for version in 3.10 3.12; do
    lender=$("$python" -c '
import sys
sys.path.insert(0, sys.argv[1] + "/tests/ttnn")
import provision
print(provision.environment(sys.argv[2]))' "$source" "$version" 2>/dev/null) || {
        echo "without ttnn for Python $version, which cannot be had here"
        continue
    }
    venv=$work/venv-$version
    install "$lender" "$venv"
    lent=$("$lender" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$lent" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ttnn.pth"
    "$python" -c '
import sys
sys.path.insert(0, sys.argv[1] + "/tests/ttnn")
from clusters import N150
print(N150.description())' "$source" >"$work/cluster.yaml"
    export TT_METAL_MOCK_CLUSTER_DESC_PATH="$work/cluster.yaml" TT_METAL_CACHE="$work/kernels"
    export TT_LOGGER_LEVEL=fatal LOGURU_LEVEL=ERROR
    cp -R "$source/examples/python" "$work/examples-$version"
    cd "$work/examples-$version"
    status=0
    "$venv/bin/tt-mem" run --holders --fail-on-leak "$venv/bin/python" leaky.py >out 2>&1 || status=$?
    [ "$status" = 3 ] && tr -s ' \n' ' ' <out | grep -q 'held by list HISTORY in module leaky' ||
        fail "the leak has no holder: $(cat out)"
    "$venv/bin/tt-mem" run --holders --fail-on-leak "$venv/bin/python" fixed.py >out 2>&1 ||
        fail "what is fixed leaks: $(cat out)"
    for workers in 0 2; do
        status=0
        "$venv/bin/pytest" -q -p no:cacheprovider -n "$workers" --ttmem tests >out 2>&1 || status=$?
        [ "$status" = 1 ] && grep -q '1 failed, 1 passed' out &&
            grep -q '^E     held by: list HISTORY in module leaky' out ||
            fail "pytest --ttmem: $(cat out)"
    done
    cat out
    cd "$work"
    echo "the wheel works beside ttnn with Python $version"
done
