#!/bin/sh
# The whole default suite.  Every step runs even when an earlier one failed; the last
# line gives the totals.  tests/check.sh STEP... runs only these steps.
set -u
cd "$(dirname "$0")/.." || exit 1

passed=0 failed=0 skipped=0
log=build/check.log
jobs=$(nproc)
mkdir -p build
failed_names=

# pass NAME STATUS: counts one check that has no tests of its own.
pass() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok    $1"
    else
        failed=$((failed + 1))
        failed_names="$failed_names $1"
        echo "FAIL  $1"
    fi
}

# quiet NAME COMMAND...: one check; its output is shown only when it fails.
quiet() {
    name=$1
    shift
    "$@" >"$log" 2>&1
    status=$?
    [ $status -eq 0 ] || cat "$log"
    pass "$name" $status
}

# number LABEL: what cmocka printed behind [  LABEL  ], or 0.
number() {
    sed -n "s/^\[  *$1 *\] \([0-9]*\) test(s).*/\1/p" "$log" | tail -n 1 | grep . || echo 0
}

# cmocka NAME BINARY: counts every test of the binary.
cmocka() {
    start=$(date +%s)
    "$2" >"$log" 2>&1
    status=$?
    p=$(number PASSED) f=$(number FAILED) s=$(number SKIPPED)
    [ $status -eq 0 ] || [ "$f" -gt 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    word="ok   "
    if [ $status -ne 0 ]; then
        word=FAIL
        failed_names="$failed_names $1"
        grep -v '^\[ *\(RUN\|OK\)' "$log"
    fi
    echo "$word $1: $p passed, $f failed, $s skipped ($(($(date +%s) - start)) s)"
}

# suite LABEL MAKEFLAGS...: builds and runs all unit and golden tests of one build.
suite() {
    label=$1
    dir=$2
    shift 2
    quiet "build ($label)" make -s -j"$jobs" "$@" tests
    for source in tests/unit/test_*.c tests/golden/test_*.c; do
        [ -e "$source" ] || continue
        cmocka "$label ${source%.c}" "$dir/${source%.c}"
    done
}

step_style() {
    quiet "direction of includes" sh tools/check_layers.sh
    # Other versions break lines elsewhere; the project is formatted by this one.
    if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        quiet "format" make -s format-check
    else
        skipped=$((skipped + 1))
        echo "skip  format: clang-format 14 is not here"
    fi
}
step_release() {
    suite release build/release
    # Built wherever nvcc is; the tests themselves skip without a GPU.
    if command -v nvcc >/dev/null; then
        quiet "build (cuda tests)" make -s -j"$jobs" cuda-tests
        for source in tests/cuda/test_*.c; do
            cmocka "release ${source%.c}" "build/release/${source%.c}"
        done
    fi
}
step_san() { suite san build/san SAN=1; }

# Tests in which threads meet, under ThreadSanitizer.
step_tsan() { quiet "threads" make -s -j"$jobs" tsan; }

# A second compiler sees other mistakes.
step_clang() {
    if command -v clang >/dev/null; then
        quiet "build (clang)" make -s -j"$jobs" CC=clang CUDA=0 BUILD=build/clang tests
    else
        skipped=$((skipped + 1))
        echo "skip  build (clang): clang is not here"
    fi
}

# Every fuzz target over its kept corpus, then a few seconds of new inputs.
step_fuzz() {
    if ! command -v clang >/dev/null || ! quiet_fuzz_build; then
        skipped=$((skipped + 1))
        echo "skip  fuzz: clang or its fuzzer runtime is not here"
        return
    fi
    for source in fuzz/fuzz_*.c; do
        [ -e "$source" ] || continue
        name=$(basename "$source" .c)
        corpus=fuzz/corpus/${name#fuzz_}
        new=build/fuzz/new/$name
        mkdir -p "$new"
        quiet "$name" build/fuzz/"$name" -max_total_time="${CARAT_FUZZ_SECONDS:-5}" -timeout=10 \
            -rss_limit_mb=2048 -artifact_prefix=build/fuzz/ "$new" "$corpus"
    done
}
quiet_fuzz_build() {
    make -s -j"$jobs" fuzz >"$log" 2>&1 || ! grep -q 'libclang_rt' "$log" || return 1
    return 0
}

# Scripts that drive the built binary as a user would.
step_cli() {
    for script in tests/cli/test_*.sh; do
        [ -e "$script" ] || continue
        quiet "$(basename "$script" .sh)" sh "$script"
    done
}

for step in ${*:-style release cli clang san tsan fuzz}; do
    "step_$step"
done
[ -z "$failed_names" ] || echo "failed:$failed_names"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
