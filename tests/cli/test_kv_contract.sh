#!/bin/sh
# Every numbered sentence of docs/kv.md is named by a test, and no test names another.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

sed -n 's/^\([0-9][0-9]*\)\. .*/\1/p' docs/kv.md | sort -n >"$dir/promised"
# Comments before a test begin with its numbers: "/* 4, 9 */", "/* 17: why */"; a file's
# head lists them after "docs/kv.md:"; both end at the first other character.
{
    sed -n 's|^/\* \([0-9][0-9, ]*\)[:. ].*|\1|p' tests/unit/test_kv*.c tests/golden/test_kv.c
    sed -n 's|.*of docs/kv\.md: \([0-9, ]*\)\..*|\1|p; s|^.*Sentence \([0-9]*\) of docs/kv\.md.*|\1|p' \
        tests/unit/test_kv*.c tests/golden/test_kv.c
} | tr -s ', ' '\n\n' | grep . | sort -nu >"$dir/tested"
[ -s "$dir/promised" ] || { echo "docs/kv.md has no numbered sentence"; exit 1; }
diff "$dir/promised" "$dir/tested" || { echo "< without a test, > without a sentence"; exit 1; }
