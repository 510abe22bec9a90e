#!/bin/sh
# carat plan: the figures that users rely on, and what it refuses.
set -u
carat=${CARAT:-build/release/carat}
bad=0

# want NAME EXPECTED ACTUAL
want() {
    [ "$2" = "$3" ] || {
        printf '%s:\n  want %s\n  got  %s\n' "$1" "$2" "$3"
        bad=1
    }
}
# field NAME JSON: the number behind "NAME":
field() {
    printf %s "$2" | sed "s/.*\"$1\": \([0-9]*\).*/\1/"
}
# fails NAME STATUS MESSAGE ARGUMENT...: exit status and the one line on stderr.
fails() {
    name=$1 status=$2 message=$3
    shift 3
    got=$("$carat" "$@" 2>&1 >/dev/null)
    want "$name, status" "$status" $?
    case $got in
    "carat: $message"*) ;;
    *) want "$name" "carat: $message…" "$got" ;;
    esac
}

while read -r model token window; do
    out=$($carat plan -m synth:$model --slots 1 --ctx 262144 --json)
    want "$model, bf16 token" "$token" "$(field global_token "$out")"
    want "$model, window" $((window << 20)) "$(field sliding_window "$out")"
    want "$model, longest" $((token * 262144)) "$(field global_sequence "$out")"
    out=$($carat plan -m synth:$model --slots 1 --ctx 262144 --kv fp8 --json)
    want "$model, fp8 token" $((token / 2)) "$(field global_token "$out")"
done <<MODELS
12b 8192 320
26b-a4b 10240 200
31b 40960 800
MODELS

for type in bf16 nvfp4 q4_0 q8_0; do
    a=$($carat plan -m synth:12b:$type --json) b=$($carat plan -m synth:12b --weights $type --json)
    want "12b as $type, both spellings" "$a" "$b"
done
out=$($carat plan -m models/demo --json)
weights=$($carat inspect -m models/demo --json | sed 's/.*"text": {"tensors": [0-9]*, "bytes": \([0-9]*\).*/\1/;q')
want "the demo's weights as inspect counts them" "$weights" \
    "$(printf %s "$out" | sed 's/.*"parameters": [0-9]*, "bytes": \([0-9]*\), "parts".*/\1/')"
case $($carat plan -m synth:31b:q4_0 --memory 24GiB) in
*"sequences that fit into 25769803776 bytes"*) ;;
*) want "what fits" "a table" "none" ;;
esac

fails "does not fit" 1 "8 sequences of 8192 tokens need " \
    plan -m synth:31b --memory 24GiB --ctx 8192
fails "too long" 1 "ctx: 262145 is not from 1 to 262144" plan -m synth:12b --ctx 262145
fails "no such geometry" 1 "no model is called '27b'" plan -m synth:27b
fails "no such weights" 1 "synth:12b:q3: no weight type 'q3'" plan -m synth:12b:q3
fails "no such weights by option" 2 "plan: --weights 'q3' is none of" plan -m synth:12b --weights q3
fails "no such KV" 2 "plan: --kv 'int4' is none of" plan -m synth:12b --kv int4
fails "no number" 2 "plan: --memory 'much' is no number of bytes" plan -m synth:12b --memory much
fails "unknown backend" 1 "backend 'abacus' is not in this build" \
    plan -m synth:12b --backend abacus

exit $bad
