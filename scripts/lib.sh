# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What ./run and ./check share: Debian packages, Meson, Python, build folders. Sourced by POSIX sh with
# the working directory at the top of the source tree; defines functions and two lists, does
# nothing by itself.

# Debian packages that building needs, and those that the tests need on top. A package that is
# missing here shows when scripts/fresh-machine runs.
BUILD_PACKAGES="gcc g++ libc6-dev meson ninja-build pkg-config scdoc libzstd-dev libxxhash-dev
    libdw-dev libelf-dev libncurses-dev"
TEST_PACKAGES="git clang clang-format clang-tidy cppcheck libcmocka-dev python3 python3-pytest
    python3-pytest-xdist python3-greenlet procps tmux libjemalloc2 libtcmalloc-minimal4"
# For the tests of the page that 'tt-mem export --format html' writes: 124 MB, about a minute.
BROWSER_PACKAGES="chromium fonts-dejavu-core"

say() {
    echo "${0##*/}: $*" >&2
}

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
    quiet_log=$(mktemp) || return 1
    quiet_status=0
    "$@" >"$quiet_log" 2>&1 || quiet_status=$?
    [ "$quiet_status" -eq 0 ] || cat "$quiet_log" >&2
    rm -f "$quiet_log"
    return "$quiet_status"
}

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
    for package in "$@"; do
        # One word per architecture that dpkg has heard of.
        # shellcheck disable=SC2016 # dpkg-query expands it
        case " $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)" in
        *" installed "*) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# as_root COMMAND...: fails without a word when there is no way to be root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

# install_packages PACKAGE...: installs what is missing, says nothing when nothing is.
#
# Returns 1 after one line on stderr when packages are missing and cannot be installed. A system
# without dpkg-query is left alone: Meson names what it does not find.
install_packages() {
    command -v dpkg-query >/dev/null 2>&1 || return 0
    missing=$(missing_packages "$@")
    missing=${missing% }
    [ -n "$missing" ] || return 0

    if ! as_root true 2>/dev/null; then
        say "missing packages: $missing; as root: apt-get install --no-install-recommends $missing"
        return 1
    fi

    say "installing packages: $missing"
    if [ -z "${package_lists_are_new:-}" ]; then
        # Without a network the lists of yesterday may still do, so only the install decides.
        quietly as_root apt-get -q -o DPkg::Lock::Timeout=300 update || true
        package_lists_are_new=1
    fi
    # shellcheck disable=SC2086 # one word per package
    quietly as_root apt-get -q -y -o DPkg::Lock::Timeout=300 \
        install --no-install-recommends $missing
}

install_build_packages() {
    # shellcheck disable=SC2086 # one word per package
    install_packages $BUILD_PACKAGES
}

install_test_packages() {
    # shellcheck disable=SC2086 # one word per package
    install_packages $BUILD_PACKAGES $TEST_PACKAGES || return 1

    # The sanitizer and fuzzer runtime carries clang's version in its name, so it comes second.
    # Where no such package exists it is part of another that clang pulls in.
    runtime="libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d . -f 1)-dev"
    if apt-cache show "$runtime" >/dev/null 2>&1; then
        install_packages "$runtime" || return 1
    fi

    # Systems without such a package, or without room for it, skip these tests.
    if apt-cache show chromium >/dev/null 2>&1; then
        # shellcheck disable=SC2086 # one word per package
        install_packages $BROWSER_PACKAGES || say "pages are not tried in a browser"
    fi
    return 0
}

# The oldest Meson that meson.build takes, as in its meson_version.
MESON_MIN=1.0

# is_version_at_least VERSION MIN: compares major and minor. "1.10.0.rc1" is newer than "1.2".
is_version_at_least() {
    awk -v have="$1" -v least="$2" 'BEGIN {
        split(have, h, "."); split(least, l, ".")
        exit !(h[1] + 0 > l[1] + 0 || (h[1] + 0 == l[1] + 0 && h[2] + 0 >= l[2] + 0))
    }'
}

has_meson() {
    is_version_at_least "$(meson --version 2>/dev/null || echo 0)" "$MESON_MIN"
}

# Puts a Meson of PyPI, and a ninja where there is none, into a folder of our own in the user's
# cache, and that first on PATH. The system's Python and its packages stay as they are. It is a
# virtual environment, as its programs find their Python by themselves: ninja calls Meson without us
# when meson.build has changed.
use_private_tools() {
    tools=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tt-mem/meson-$MESON_MIN
    PATH=$tools/bin:$PATH
    export PATH
    has_meson || set -- "$@" "meson>=$MESON_MIN"
    command -v ninja >/dev/null 2>&1 || set -- "$@" ninja
    [ $# -gt 0 ] || return 0
    install_packages python3 python3-venv || return 1
    say "installing from PyPI into $tools: $*"
    quietly python3 -m venv "$tools" || return 1
    quietly "$tools/bin/pip" install --disable-pip-version-check "$@"
}

# Finds a Meson that is new enough and a ninja: the system's, or else PyPI's, as Ubuntu 22.04 has
# Meson 0.61 and Debian 11 has 0.56. Returns 1 after one line on stderr when there is neither.
find_build_tools() {
    if has_meson && command -v ninja >/dev/null 2>&1; then
        return 0
    fi
    use_private_tools || true
    if ! has_meson; then
        say "cannot build: needs Meson $MESON_MIN or newer and found" \
            "$(meson --version 2>/dev/null || echo none); 'pip install meson' gets one"
        return 1
    fi
    if ! command -v ninja >/dev/null 2>&1; then
        say "cannot build: there is no 'ninja' on PATH; 'pip install ninja' gets one"
        return 1
    fi
}

# Prints a Python 3 that has pytest: the system's own first, as the one on PATH may be a version
# manager's without it.
find_python_with_pytest() {
    for python in /usr/bin/python3 python3; do
        if "$python" -c 'import pytest' >/dev/null 2>&1; then
            command -v "$python"
            return 0
        fi
    done
    return 1
}

# Is DIR ($1) a configured build folder of this very source tree, and not of one it was copied from?
# Meson's own record escapes some paths, so build_setup leaves a plain one.
build_is_ours() {
    [ -f "$1/build.ninja" ] || return 1
    [ "$(cat "$1/.source-tree" 2>/dev/null)" = "$PWD" ] ||
        grep -q -F "\"source\": \"$PWD\"" "$1/meson-info/meson-info.json" 2>/dev/null
}

# build_setup DIR OPTION...: configures DIR anew or with these options on top of what it has.
#
# A folder that an incompatible Meson made, that is half made, or that came along with a copied
# tree cannot be reconfigured; it is removed and made anew.
build_setup() {
    build_dir=$1
    shift
    if build_is_ours "$build_dir" &&
        meson setup --reconfigure "$build_dir" "$@" >/dev/null 2>&1; then
        return 0
    fi
    if [ -d "$build_dir/meson-private" ] || [ -d "$build_dir/meson-info" ]; then
        rm -rf "$build_dir"
    fi
    quietly meson setup "$build_dir" "$@" || return 1
    echo "$PWD" >"$build_dir/.source-tree"
}

# Would ninja in DIR ($1) start from the present meson.build? Lets ninja bring it up to date.
build_is_current() {
    build_is_ours "$1" && ninja -C "$1" build.ninja >/dev/null 2>&1
}
