#!/bin/sh
# carat parse as a user calls it: lines in, lines out, errors in place.
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

got=$($carat parse -m $demo --jsonl <<'END'
{"text": "Hello<turn|>"}
{"text": "<|channel>thought\nplan\n<channel|>Hi", "prompt": null, "tools": null}
{"text": "plan\n<channel|>Hi", "prompt": "<|turn>model\n<|channel>thought\n"}
{"text": "<|tool_call>call:f{a:<|\"|>say \"x\"<|\"|>,b:[1.0]}<tool_call|><|tool_call>call:g{}<tool_call|><|tool_response>"}
{"text": "<|channel>thought\nx\n<channel|>call:f{n:42}", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "string"}}}}}]}
{"text": "<|tool_call>call:f{a:<|\"|>never", "finish_reason": "length"}
{"ids": [744, 845, 1653], "prompt": [1552]}
{"text": "a\"\u0001\ud83d\ude42"}
END
)
want "messages" '{"content": "Hello", "reasoning_content": null, "tool_calls": [], "finish_reason": "stop"}
{"content": "Hi", "reasoning_content": "plan", "tool_calls": [], "finish_reason": "stop"}
{"content": "Hi", "reasoning_content": "plan", "tool_calls": [], "finish_reason": "stop"}
{"content": null, "reasoning_content": null, "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{\"a\":\"say \\\"x\\\"\",\"b\":[1.0]}"}}, {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}}], "finish_reason": "tool_calls"}
{"content": null, "reasoning_content": "x", "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{\"n\":\"42\"}"}}], "finish_reason": "tool_calls"}
{"content": "call:f{a:\"never", "reasoning_content": null, "tool_calls": [], "finish_reason": "length"}
{"content": "", "reasoning_content": null, "tool_calls": [], "finish_reason": "stop"}
{"content": "a\"\u0001🙂", "reasoning_content": null, "tool_calls": [], "finish_reason": "stop"}' "$got"

got=$($carat parse -m $demo --jsonl <<'END'
{"text"
[]
{"prompt": "x"}
{"text": "x", "ids": [1]}
{"text": 7}
{"text": [3072]}
{"text": [-1]}
{"text": ["1"]}
{"text": "x", "prompt": {}}
{"text": "x", "texd": 1}
{"text": "x", "finish_reason": "done"}
{"text": "x", "tools": [{"type": "function", "function": {"name": 1}}]}
{"text": "still here"}
END
)
want "errors" '{"error": "line: JSON, byte 7: expected '"':'"' after a key"}
{"error": "line: must be an object, not an array"}
{"error": "text: is missing"}
{"error": "text: is given beside ids"}
{"error": "text: must be a string or an array of token ids, not a number"}
{"error": "text[0]: token id 3072 is not in the vocabulary of 3072"}
{"error": "text[0]: token id -1 is not in the vocabulary of 3072"}
{"error": "text[0]: must be a token id, not a string"}
{"error": "prompt: must be a string or an array of token ids, not an object"}
{"error": "unknown key '"'texd'"'"}
{"error": "finish_reason: must be \"stop\" or \"length\", not \"done\""}
{"error": "tools[0].function.name: must be a string, not a number"}
{"content": "still here", "reasoning_content": null, "tool_calls": [], "finish_reason": "stop"}' "$got"

want "no model" "carat: parse: -m is missing; see carat parse --help" "$($carat parse --jsonl 2>&1)"
want "no such model" "1 carat: /nowhere: No such file or directory" \
    "$(got=$($carat parse -m /nowhere --jsonl </dev/null 2>&1); echo "$? $got")"

# What the demo model writes comes back from run and from parse alike.
think="What is 2 plus 2?"
json=$($carat run -m $demo -p "$think" --temp 0 --think --json)
ids=$(printf %s "$json" | sed 's/.*"ids": \(\[[^]]*\]\).*/\1/')
want "run and parse" \
    "$(printf %s "$json" | sed 's/.*\("content":.*\), "finish_reason".*/\1/')" \
    "$(echo "{\"ids\": $ids}" | $carat parse -m $demo --jsonl | sed 's/^{\(.*\), "finish_reason".*/\1/')"
case $($carat run -m $demo -p "$think" --temp 0 --think) in
"thought: "*"
answer: 2 + 2 = 4.") ;;
*) want "thought shown" "thought: ... answer: ..." "something else" ;;
esac

exit $bad
