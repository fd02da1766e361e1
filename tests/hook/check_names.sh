#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: check_names.sh LIBRARY NAMES_H MAP
#
# The names that LIBRARY, the hook, defines for others are those that NAMES_H says it stands in
# for, and those that MAP has in full: one more would take a function from somebody, one fewer
# would not be heard.
set -u
export LC_ALL=C

command -v nm >/dev/null || {
    echo "skipped: needs nm"
    exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

{
    sed -n '/define TTM_INTERPOSED/,/^$/s/.*X([A-Z_]*, \([A-Za-z0-9_]*\)).*/\1/p' "$2"
    sed -n 's/^ *\([A-Za-z0-9_]*\);.*/\1/p' "$3"
} | sort >"$work/listed"
# The runtime of a sanitizer shows names of its own.
nm -D --defined-only "$1" | awk '{ print $3 }' | grep -v '^__' | sort >"$work/visible"
[ -s "$work/listed" ] || {
    echo "no names in $2"
    exit 1
}
diff -U0 "$work/listed" "$work/visible" && echo "$(wc -l <"$work/listed") names, as listed"
