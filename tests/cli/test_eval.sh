#!/bin/sh
# carat eval: windows, and a reference that is the model itself.
set -u
cd "$(dirname "$0")/../.." || exit 1
carat=build/release/carat
demo=models/demo
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

# has WORDS TEXT
has() {
    case $2 in
    *"$1"*) ;;
    *)
        printf 'want %s\ngot  %s\n' "$1" "$2"
        bad=1
        ;;
    esac
}

text="The capital of France is Paris. The capital of Italy is Rome."
printf '%s' "$text" >"$dir/text"
ids=$($carat tokenize -m $demo "$text")
n=$(echo "$ids" | tr -dc , | wc -c)
n=$((n + 1))
bos=$($carat tokenize -m $demo "<bos>")
echo "[${bos#[}" | sed 's/\]$//' | tr -d '[' >"$dir/bos"
echo "[$(cat "$dir/bos"), ${ids#[}" >"$dir/ids.json"
$carat logits -m $demo --ids "$dir/ids.json" --out "$dir/ref.safetensors" || bad=1

got=$($carat eval -m $demo --text "$dir/text" --ref "$dir/ref.safetensors" --json)
has "\"tokens\": $n, \"windows\": 1, \"ctx\": 512" "$got"
has '"kl_mean": 0, "kl_max": 0, "top1_agreement": 1}' "$got"
# The rounded mode differs a little, and says so.
got=$($carat eval -m $demo --text "$dir/text" --ref "$dir/ref.safetensors" --json --mode bf16)
case $got in
*'"kl_mean": 0,'*)
    echo "bf16 against f32 gives no divergence at all: $got"
    bad=1
    ;;
esac
has "\"tokens\": $n, \"windows\": $(((n + 4) / 5)), \"ctx\": 6" \
    "$($carat eval -m $demo --text "$dir/text" --ctx 6 --json)"
has "the windows of the text need" \
    "$($carat eval -m $demo --text "$dir/text" --ctx 6 --ref "$dir/ref.safetensors" 2>&1)"
# A reference may rule a token out; it may not be no number.
end=$(($(wc -c <"$dir/ref.safetensors") - 4))
printf '\000\000\200\377' | dd of="$dir/ref.safetensors" bs=1 seek=$end conv=notrunc status=none
got=$($carat eval -m $demo --text "$dir/text" --ref "$dir/ref.safetensors" --json)
has '"top1_agreement": 1}' "$got"
case $got in
*nan*)
    echo "a reference of -inf gives $got"
    bad=1
    ;;
esac
printf '\000\000\300\177' | dd of="$dir/ref.safetensors" bs=1 seek=$end conv=notrunc status=none
has "row $n of \`logits\` is not finite" \
    "$($carat eval -m $demo --text "$dir/text" --ref "$dir/ref.safetensors" 2>&1)"
: >"$dir/empty"
has "holds no text" "$($carat eval -m $demo --text "$dir/empty" 2>&1)"
has "--ctx 5000, the model has positions for 4096" \
    "$($carat eval -m $demo --text "$dir/text" --ctx 5000 2>&1)"
exit $bad
