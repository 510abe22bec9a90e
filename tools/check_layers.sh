#!/bin/sh
# Fails when a source file includes a folder that is not its own or to its left in
#   base <- format, text, grammar, ops <- model, kv <- engine <- api <- server <- cli
set -eu

rank() {
    case $1 in
    base) echo 0 ;;
    format | text | grammar | ops) echo 1 ;;
    model | kv) echo 2 ;;
    engine) echo 3 ;;
    api) echo 4 ;;
    server) echo 5 ;;
    cli) echo 6 ;;
    *) echo none ;;
    esac
}

bad=0
for file in $(find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'); do
    from=$(echo "$file" | cut -d/ -f2)
    from_rank=$(rank "$from")
    if [ "$from_rank" = none ]; then
        echo "$file: folder src/$from is not a layer"
        bad=1
        continue
    fi
    for to in $(sed -n 's/^#include "\([a-z]*\)\/.*/\1/p' "$file" | sort -u); do
        to_rank=$(rank "$to")
        if [ "$to" != "$from" ] && { [ "$to_rank" = none ] || [ "$to_rank" -ge "$from_rank" ]; }; then
            echo "$file: src/$from may not include src/$to"
            bad=1
        fi
    done
    # Only the command line prints or exits; asserts are the one exception.
    if [ "$from" != cli ] && grep -nE '\b(printf|puts|putchar|fprintf|fputs|exit|abort)\(' "$file"; then
        echo "$file: only src/cli prints or exits"
        bad=1
    fi
done
exit $bad
