#!/bin/sh
# carat run --jsonl: the answers of single runs, in order, and going on after a stop.
set -u
carat=${CARAT:-build/release/carat}
demo=models/demo
bad=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# want NAME EXPECTED ACTUAL
want() {
    [ "$2" = "$3" ] || {
        printf '%s:\n  want %.300s\n  got  %.300s\n' "$1" "$2" "$3"
        bad=1
    }
}
# Without what differs from run to run.
untimed() { sed 's/, "timings".*//'; }
# From the text on: what a single run has too.
answers() { untimed | sed 's/^.*"text"/"text"/'; }

many() { "$carat" run -m $demo --jsonl "$@"; }

# Questions that the demo model answers, greedy and sampled.
i=0
while read -r question; do
    printf '{"prompt": "%s", "temperature": 0, "seed": %d}\n' "$question" $i >>"$dir/in"
    "$carat" run -m $demo -p "$question" --temp 0 --seed $i -n 24 --json | answers >>"$dir/single"
    i=$((i + 1))
    printf '{"prompt": "%s", "temperature": 1, "top_p": 0.9, "seed": %d}\n' "$question" $i >>"$dir/in"
    "$carat" run -m $demo -p "$question" --temp 1 --top-p 0.9 --seed $i -n 24 --json |
        answers >>"$dir/single"
    i=$((i + 1))
done <<'END'
What is the capital of France?
What is the capital of Japan?
What is 12 + 7?
Tell me a story.
Write a story about a fox.
Count from 1 to 9.
What is the opposite of hot?
What is 3 + 4?
END
for slots in 1 4 8; do
    many -n 24 --slots $slots <"$dir/in" | answers >"$dir/batch"
    want "answers of single runs, $slots slots" "$(cat "$dir/single")" "$(cat "$dir/batch")"
done
want "no input" "" "$(many </dev/null)"

# The ways to ask, and their equals of a single run.
ask="What is the capital of France?"
system="Answer briefly."
cat >"$dir/ways" <<END
{"id": "q", "prompt": "$ask", "system": "$system", "think": true}
{"messages": [{"role": "system", "content": "$system"}, {"role": "user", "content": "$ask"}], "chat_template_kwargs": {"enable_thinking": true}}
{"prompt": "$ask", "raw": true, "stop": ["zebra"]}
{"ids": [2, 5, 9], "max_tokens": 3}
{"prompt": "$ask", "stop": "Paris"}
END
many --temp 0 -n 8 --seed 5 <"$dir/ways" | answers | sed 's/, "seed".*//' >"$dir/got"
{
    "$carat" run -m $demo --temp 0 -n 8 --json -p "$ask" --system "$system" --think
    "$carat" run -m $demo --temp 0 -n 8 --json -p "$ask" --system "$system" --think
    "$carat" run -m $demo --temp 0 -n 8 --json -p "$ask" --raw
    "$carat" run -m $demo --temp 0 -n 3 --json --ids 2,5,9
    "$carat" run -m $demo --temp 0 -n 8 --json -p "$ask" --stop Paris
} | answers | sed 's/, "seed".*//' >"$dir/want"
want "every way to ask" "$(cat "$dir/want")" "$(cat "$dir/got")"

# A bad line is its own answer.
# refused MESSAGE LINE
refused() {
    got=$(printf '%s\n{"prompt": "%s", "max_tokens": 1}\n' "$2" "$ask" | many --temp 0)
    want "bad line" "$1" "$(printf '%s\n' "$got" | sed -n '1s/.*"error": "\(.*\)"}$/\1/p')"
    case $(printf '%s\n' "$got" | sed -n 2p) in
    '{"index": 1, '*'"text": "The"'*) ;;
    *) want "the line behind $2" "an answer" "$got" ;;
    esac
}
one="a line has one of prompt, messages and ids; this has"
refused 'line: JSON, byte 0: expected a value' 'x'
refused 'a line must be an object, not an array' '[1]'
refused "$one none" '{"seed": 1}'
refused "$one several" '{"prompt": "a", "ids": [1]}'
refused 'temprature: unknown field' '{"prompt": "a", "temprature": 1}'
refused 'top_p: 3 is not from 0 to 1' '{"prompt": "a", "top_p": 3}'
refused 'max_tokens: 0 is not from 1 to 2147483647' '{"prompt": "a", "max_tokens": 0}'
refused 'tools: does not go with prompt' '{"prompt": "a", "tools": []}'
refused 'think: does not go with messages' '{"messages": [], "think": true}'
refused 'system: needs the chat template, which raw leaves out' '{"prompt": "a", "raw": true, "system": "b"}'
refused 'prompt: must be a string, not a number' '{"prompt": 1}'
refused 'stop: must be a string or an array of strings, not a number' '{"prompt": "a", "stop": [1]}'
refused 'ids[1]: -1 is not in the vocabulary of 3072' '{"ids": [1, -1]}'
refused 'seed: must be a whole number from 0 to 9223372036854775807, not a negative one' '{"prompt": "a", "seed": -1}'
case $(printf '{"id": "me", "prompt": 1}' | many) in
'{"index": 0, "id": "me", "input": "'*) ;;
*) want "id of a bad line" me "something else" ;;
esac

# A program that waits for each answer before it asks on.
mkfifo "$dir/to" "$dir/from"
many --temp 0 -n 1 <"$dir/to" >"$dir/from" &
exec 3>"$dir/to" 4<"$dir/from"
for i in 0 1; do
    printf '{"prompt": "%s"}\n' "$ask" >&3
    read -r line <&4
    case $line in
    "{\"index\": $i, "*) ;;
    *) want "answer $i at once" "index $i" "$line" ;;
    esac
done
exec 3>&- 4<&-
wait

# Going on: after any number of answers, and after a cut one.
many -n 24 --seed 3 -o "$dir/whole" <"$dir/in"
untimed <"$dir/whole" >"$dir/expected"
want "answers of every line" "$(wc -l <"$dir/in")" "$(wc -l <"$dir/whole")"
bytes=$(wc -c <"$dir/whole")
for cut in 0 1 $((bytes / 3)) $((bytes - 1)) "$bytes"; do
    head -c "$cut" "$dir/whole" >"$dir/part"
    many -n 24 --seed 3 -o "$dir/part" <"$dir/in" || want "going on" 0 1
    want "going on from byte $cut" "$(cat "$dir/expected")" "$(untimed <"$dir/part")"
done
# fails NAME MESSAGE ARGUMENT...
fails() {
    name=$1 message=$2
    shift 2
    got=$(many "$@" 2>&1 >/dev/null <"$dir/in")
    want "$name, status" 1 $?
    case $got in
    $message) ;;
    *) want "$name" "$message" "$got" ;;
    esac
}
cp "$dir/whole" "$dir/before"
fails "other options" "carat: $dir/whole: line 1 answers input *, but this line and these options are *" \
    -n 25 --seed 3 -o "$dir/whole"
head -n 3 "$dir/in" >"$dir/short"
got=$(many -n 24 --seed 3 -o "$dir/whole" <"$dir/short" 2>&1)
want "fewer lines" "carat: $dir/whole answers 16 lines, standard input has 3" "$got"
echo '{"a": 1}' >"$dir/other"
fails "another file" "carat: $dir/other: line 1 is no answer of run --jsonl: it has no index" -o "$dir/other"
fails "no folder" "carat: $dir/none/x: No such file or directory" -o "$dir/none/x"
want "refused files are left alone" "$(cat "$dir/before")" "$(cat "$dir/whole")"

got=$("$carat" run -m $demo --jsonl -p x 2>&1)
want "usage" 2 $?
got=$("$carat" run -m $demo -p x -o y 2>&1)
want "usage" 2 $?
exit $bad
