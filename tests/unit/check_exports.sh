#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: check_exports.sh LIBRARY MAP
#
# The names that LIBRARY defines for others are those that MAP lists, each under its version; no
# more, as it lives in other people's programs, and no fewer.
set -u
export LC_ALL=C

command -v nm >/dev/null || {
    echo "skipped: needs nm"
    exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# TTMEM_1 { global: a; b; local: *; };
awk '
    /\/\*/ { sub(/\/\*.*\*\//, "") }
    /\{/ { version = $1; is_global = 0; print version "@@" version }
    /global:/ { is_global = 1; next }
    /local:/ { is_global = 0 }
    is_global && /;/ { gsub(/[ \t;]/, ""); if ($0 != "}") print $0 "@@" version }
' "$2" | sort >"$work/listed"
nm -D --defined-only "$1" | awk '{ print $3 }' | sort >"$work/visible"
# The version itself is a symbol, with one @ in older binutils and two in newer ones, or none.
sed -i '/^TTMEM_[0-9A-Z.]*\(@.*\)\{0,1\}$/d' "$work/listed" "$work/visible"
# The runtime of a sanitizer or of coverage shows names of its own.
sed -i '/^__\(asan\|ubsan\|tsan\|sanitizer\|odr_asan\|gcov\|llvm\|start___sancov\|stop___sancov\)/d' \
    "$work/visible"

[ -s "$work/listed" ] || {
    echo "no names in $2"
    exit 1
}
# Lines with '-' are listed and not visible, with '+' visible and not listed.
diff -U0 "$work/listed" "$work/visible" && echo "$(wc -l <"$work/listed") names, as listed"
