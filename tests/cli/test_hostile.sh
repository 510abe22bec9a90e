#!/bin/sh
# Broken surroundings: closed or full outputs, unreadable inputs, interrupts, weights that
# are not numbers.  Each ends in one line on stderr and a status that says so.
set -u
cd "$(dirname "$0")/../.." || exit 1
carat=$PWD/build/release/carat
demo=$PWD/models/demo
fixtures=$(cd "${CARAT_SHARED:-../shared}" 2>/dev/null && pwd)/data/fixtures
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
bad=0

# fails NAME STATUS WORDS: what the last command left in `status` and the file `stderr`.
fails() {
    if [ "$status" -ne "$2" ] || ! grep -q "^carat: .*$3" stderr || [ "$(wc -l <stderr)" -ne 1 ]; then
        printf '%s: status %s, wanted %s and one line with: %s\n' "$1" "$status" "$2" "$3"
        cat stderr
        bad=1
    fi
}

echo "The capital of France is Paris." >text
echo '[239, 5, 6, 7]' >ids

# --- outputs
for command in "eval -m $demo --text text" "help" "version" "run --help" \
    "run -m $demo -p hi --temp 0" "inspect -m $demo" "tokenize -m $demo hi"; do
    # shellcheck disable=SC2086
    "$carat" $command >/dev/full 2>stderr
    status=$?
    fails "full disk: $command" 1 "standard output"
done
seq -s, 1 2000 | sed 's/.*/[&]/' >many
(
    ulimit -f 4
    "$carat" logits -m "$demo" --ids many --out big.safetensors 2>stderr
)
status=$?
fails "file size limit" 1 "File too large"
[ -z "$(find . -name 'big*')" ] || { echo "file size limit: a part stays"; bad=1; }

# --- inputs
for command in "tokenize -m $demo --jsonl" "render -m $demo --jsonl"; do
    # shellcheck disable=SC2086
    "$carat" $command </tmp >/dev/null 2>stderr
    status=$?
    fails "a directory as input: $command" 1 "standard input"
done
got=$(printf '{"messages": []}\n\n{"messages": []}\n' | "$carat" render -m "$demo" --jsonl | grep -c .)
[ "$got" -eq 3 ] || { echo "render: $got answers to 3 lines"; bad=1; }

# --- interrupts
(sleep 5) | "$carat" render -m "$demo" --jsonl >/dev/null 2>stderr &
sleep 0.5
pkill -INT -f "^$carat render -m $demo"
wait $!
status=$?
fails "^C in render" 1 "interrupted"
for i in $(seq 1 4000); do echo "word number $i of a long text"; done >long
# In the foreground timeout signals its child alone; twice would end it at once.
start=$(date +%s)
timeout --foreground -s INT 1 "$carat" eval -m "$demo" --text long --ctx 4096 >/dev/null 2>stderr
status=1
fails "^C in eval" 1 "stopped after"
[ $(($(date +%s) - start)) -le 4 ] || { echo "^C in eval: took too long"; bad=1; }
seq -s, 1 3000 | sed 's/.*/[&]/' >many
timeout -s HUP 0.5 "$carat" logits -m "$demo" --ids many --chunk 1 --out hup.safetensors 2>stderr
status=1
fails "hang-up in logits" 1 "stopped after"
[ -z "$(find . -name 'hup*')" ] || { echo "hang-up in logits: a part stays"; bad=1; }

# --- weights that are not numbers, tokenizers of other models
cp -r "$demo" broken
chmod -R u+w broken
size=$(wc -c <broken/model.safetensors)
# bf16 NaNs over the last 64 KiB of weights.
head -c 65536 /dev/zero | tr '\0' '\377' |
    dd of=broken/model.safetensors bs=1 seek=$((size - 65536)) conv=notrunc status=none
for command in "run -m broken -p hi --temp 0" "eval -m broken --text text --json" \
    "logits -m broken --ids ids --out broken.safetensors"; do
    # shellcheck disable=SC2086
    "$carat" $command >/dev/null 2>stderr
    status=$?
    fails "NaN weights: $command" 1 "not finite"
done
[ ! -e broken.safetensors ] || { echo "NaN weights: a file was written"; bad=1; }
if [ -d "$fixtures/dense" ]; then
    mkdir other
    cp "$fixtures"/dense/*.json "$fixtures/dense/model.safetensors" other
    cp "$demo/tokenizer.json" "$demo/chat_template.jinja" other
    "$carat" run -m other -p hi >/dev/null 2>stderr
    status=$?
    fails "tokenizer of another model" 1 "3072 ids, the model's vocab_size is 256"
fi

# --- messages stay one line
"$carat" run -m "$(printf 'a\nb\033[31m')" -p x 2>stderr
status=$?
fails "newline in a path" 1 'a\\nb\\x1b'
"$carat" run -m "$demo" --ids 2, 2>stderr
status=$?
fails "ids that are none" 2 "expected an id"
exit $bad
