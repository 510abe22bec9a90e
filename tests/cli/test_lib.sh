#!/bin/sh
# The library as its users get it: installed, found by pkg-config, linked both ways.
set -u
carat=${CARAT:-build/release/carat}
build=$(dirname "$carat")
bad=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# want NAME EXPECTED ACTUAL
want() {
    [ "$2" = "$3" ] || {
        printf '%s:\n  want %s\n  got  %s\n' "$1" "$2" "$3"
        bad=1
    }
}

sanitized=$(nm "$build/libcarat.a" 2>/dev/null | grep -c __asan_init)
if [ "$sanitized" -gt 0 ]; then
    echo "skipped: a sanitizer's library is not what is installed"
    exit 0
fi
make -s install PREFIX=/usr DESTDIR="$dir" >"$dir/log" 2>&1 || {
    cat "$dir/log"
    exit 1
}
for file in bin/carat include/carat.h lib/libcarat.a lib/libcarat.so.0 lib/pkgconfig/carat.pc; do
    [ -f "$dir/usr/$file" ] || want "installed" "$file" "nothing"
done
want "visible symbols" "" \
    "$(nm -D --defined-only "$dir/usr/lib/libcarat.so.0" | awk '$3 !~ /^carat_/ { print $3 }')"

paris='The capital of France is Paris.'
flags="-std=c17 -Wall -Wextra -Werror -I$dir/usr/include"
for cc in gcc clang; do
    command -v $cc >/dev/null || continue
    $cc $flags -o "$dir/hello" examples/hello.c -L"$dir/usr/lib" -lcarat || bad=1
    got=$(LD_LIBRARY_PATH=$dir/usr/lib "$dir/hello" models/demo "What is the capital of France?")
    want "hello by $cc" "$paris" "$(printf '%s\n' "$got" | head -n 1)"
done
static=$(sed -n 's/^Libs.private: //p' "$dir/usr/lib/pkgconfig/carat.pc")
gcc $flags -o "$dir/static" examples/hello.c "$dir/usr/lib/libcarat.a" $static || bad=1
got=$("$dir/static" models/demo "What is the capital of France?")
want "hello, static" "$paris" "$(printf '%s\n' "$got" | head -n 1)"
got=$("$dir/static" /nowhere x 2>&1)
want "no model" "hello: /nowhere/config.json: No such file or directory" "$got"
[ "$(wc -l <examples/hello.c)" -le 60 ] || want "length of the example" "60 lines" "more"

echo '#include <carat.h>' >"$dir/alone.c"
gcc $flags -pedantic -c -o "$dir/alone.o" "$dir/alone.c" || bad=1
if command -v g++ >/dev/null; then
    cp "$dir/alone.c" "$dir/alone.cc"
    g++ -Wall -Wextra -Werror -I"$dir/usr/include" -c -o "$dir/alone.o" "$dir/alone.cc" || bad=1
fi
exit $bad
