#!/bin/sh
# carat run and the shared handling of command lines, as a user sees them.
set -u
carat=${CARAT:-build/release/carat}
demo=models/demo
bad=0

# want NAME EXPECTED ACTUAL
want() {
    [ "$2" = "$3" ] || {
        printf '%s:\n  want %s\n  got  %s\n' "$1" "$2" "$3"
        bad=1
    }
}
# fails NAME STATUS MESSAGE ARGUMENT...: exit status and the one line on stderr.
fails() {
    name=$1 status=$2 message=$3
    shift 3
    got=$("$carat" "$@" 2>&1 >/dev/null)
    want "$name, status" "$status" $?
    want "$name" "carat: $message" "$got"
}

ask="What is the capital of France?"
paris="The capital of France is Paris."
want "plain answer" "$paris" "$($carat run -m $demo -p "$ask" --temp 0)"
want "prompt from standard input" "$paris" "$(printf %s "$ask" | $carat run -m $demo -p - --temp 0)"
one=$($carat run -m $demo -p "$ask" --temp 0 --json --threads 1 | sed 's/, "seed".*//')
two=$($carat run -m $demo -p "$ask" --temp 0 --json --threads 2 | sed 's/, "seed".*//')
want "threads change nothing" "$one" "$two"
case $one in
*"\"text\": \"$paris\""*"\"finish_reason\": \"stop\""*) ;;
*) want "json" "text and finish_reason" "$one" ;;
esac
a=$($carat run -m $demo -p "Tell me a story." --seed 7 -n 40)
want "same seed, same answer" "$a" "$($carat run -m $demo -p "Tell me a story." --seed 7 -n 40)"
case $($carat run -m $demo -p "$ask" --temp 0 -n 2 --json) in
*'"finish_reason": "length"'*'"completion_tokens": 2'*) ;;
*) want "length" "finish_reason length after 2 tokens" "something else" ;;
esac

# text PATTERN NAME ARGUMENT...: the greedy answer to $ask is like PATTERN.
text() {
    pattern=$1 name=$2
    shift 2
    got=$($carat run -m $demo -p "$ask" --temp 0 "$@")
    case $got in
    $pattern) ;;
    *) want "$name" "$pattern" "$got" ;;
    esac
}
text "The capital of France is " "stop string" --stop Paris
text "The capital of France is Paris" "stop string kept" --stop Paris --include-stop
text "The capit" "first stop string" --stop " is" --stop France --stop al
text "$paris" "no stop string in the answer" --stop Parix --stop "Paris.."
text "The capital of France is Paris?*" "stop string before min-tokens" --stop Paris --min-tokens 9
case $($carat run -m $demo -p "$ask" --temp 0 --stop Paris --json) in
*'"text": "The capital of France is "'*'"finish_reason": "stop"'*) ;;
*) want "stop string, json" "finish_reason stop" "something else" ;;
esac
case $($carat run -m $demo -p "$ask" --temp 0 --ignore-eos -n 20 --json) in
*'"finish_reason": "length"'*'"completion_tokens": 20'*) ;;
*) want "ignore-eos" "20 tokens" "something else" ;;
esac
# At this temperature every option has something to change.
hot() {
    $carat run -m $demo -p "Tell me a story." --temp 2 --seed 1 -n 40 "$@"
}
said=$(hot)
want "options are all there is to chance" "$said" "$(hot)"
for option in "--top-k 2" "--top-p 0.5" "--min-p 0.2" "--typical-p 0.3" "--repeat-penalty 2" \
    "--presence-penalty 2" "--frequency-penalty 2" "--seed 2"; do
    # shellcheck disable=SC2086 # options and values are words
    other=$(hot $option)
    [ "$said" != "$other" ] || want "$option" "another answer" "$other"
done
said=$($carat run -m $demo -p "Tell me a story." --temp 0 -n 120)
other=$($carat run -m $demo -p "Tell me a story." --temp 0 -n 120 --dry-multiplier 100)
[ "$said" != "$other" ] || want "dry" "another answer" "$other"

fails "no model" 2 "run: -m is missing; see carat run --help" run -p x
fails "no prompt" 2 "run: give the prompt by -p or by --ids, one of the two" run -m $demo
fails "unknown option" 2 "run: unknown option '--wat'; see carat run --help" run --wat
fails "missing value" 2 "run: -p needs a value" run -m $demo -p
fails "bad number" 2 "--temp: 'hot' is not a number from 0 to 100" run -m $demo -p x --temp hot
fails "top_p out of range" 2 "--top-p: '1.5' is not a number from 0 to 1" \
    run -m $demo -p x --top-p 1.5
fails "empty stop string" 1 "stop[0]: an empty string stops nothing" run -m $demo -p x --stop ""
fails "min-tokens too large" 1 "min_tokens: 50, the sequence has at most 19 tokens" \
    run -m $demo -p x -n 5 --min-tokens 50
fails "unknown command" 2 "unknown command 'dance'; \`carat help\` lists them" dance
fails "no such model" 1 "/nowhere/config.json: No such file or directory" run -m /nowhere -p x
fails "id out of range" 1 "token id 99999 at position 0, the vocabulary has 3072" \
    run -m $demo --ids 99999
fails "unknown backend" 1 "backend 'abacus' is not in this build; it has: ref" \
    run -m $demo -p x --backend abacus
fails "empty prompt" 1 "the prompt is empty" run -m $demo --raw -p ""

exit $bad
