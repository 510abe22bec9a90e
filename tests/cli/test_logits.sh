#!/bin/sh
# carat logits as a user meets it: same bytes for every chunk, clear refusals, and nothing
# left behind by ^C.
set -u
cd "$(dirname "$0")/../.." || exit 1
carat=$PWD/build/release/carat
fixtures=${CARAT_SHARED:-../shared}/data/fixtures
[ -d "$fixtures/dense" ] || { echo "skipped: $fixtures is not here"; exit 0; }
fixtures=$(cd "$fixtures" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

# refuses WORDS ARGUMENT...: exit 1 or 2, the words in one line on stderr, no file.
refuses() {
    words=$1
    shift
    "$carat" logits "$@" --out out.st 2>stderr
    status=$?
    if [ $status -ne 1 ] && [ $status -ne 2 ] || ! grep -q "$words" stderr ||
        [ "$(wc -l <stderr)" -ne 1 ] || [ -n "$(find . -name 'out.st*')" ]; then
        echo "carat logits $*: status $status, wanted a line with '$words':"
        cat stderr
        failed=1
    fi
}

echo '[2, 5, 6, 7, 9, 100, 200, 3, 4, 250, 17, 18, 19]' >ids
for chunk in 1 3 64; do
    "$carat" logits -m "$fixtures/dense" --ids ids --out "$chunk.st" --chunk $chunk --hidden ||
        failed=1
    cmp 1.st "$chunk.st" || failed=1
done
"$carat" logits -m "$fixtures/dense" --ids ids --out 1.st --mode bf16 || failed=1
cmp -s 1.st 3.st && { echo "bf16 mode gives the f32 file"; failed=1; }

echo '[2, 256]' >bad
refuses 'id 256 at index 1, the vocabulary has 256' -m "$fixtures/dense" --ids bad
echo '[2, -1]' >bad
refuses 'bad' -m "$fixtures/dense" --ids bad
echo '[]' >bad
refuses 'empty' -m "$fixtures/dense" --ids bad
seq -s , 513 | sed 's/[0-9]*/2/g; s/.*/[&]/' >bad
refuses '513 ids, the model has positions for 512' -m "$fixtures/dense" --ids bad
refuses 'missing' -m "$fixtures/dense"
refuses "'f16'" -m "$fixtures/dense" --ids ids --mode f16
refuses 'backend' -m "$fixtures/dense" --ids ids --backend abacus

# Long enough that the signal arrives first.
seq -s , 8000 | sed 's/[0-9]*/2/g; s/.*/[&]/' >long
"$carat" logits -m "$fixtures/realheads" --ids long --out out.st --chunk 16 2>stderr &
sleep 1
kill -INT $!
wait $!
status=$?
if [ $status -ne 1 ] || ! grep -q 'stopped after' stderr || [ -n "$(find . -name 'out.st*')" ]; then
    echo "interrupted: status $status, files:" out.st*
    cat stderr
    failed=1
fi
exit $failed
