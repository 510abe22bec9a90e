#!/bin/sh
# carat render as a user calls it: lines in, lines out, errors in place.
set -eu
carat=${CARAT:-build/release/carat}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# same WANT GOT
same() {
    [ "$1" = "$2" ] || { printf 'want %s\ngot  %s\n' "$1" "$2"; exit 1; }
}

printf '%s' '{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{{ raise_exception("too many") if messages | length > 1 }}' >"$dir/chat_template.jinja"
echo '{"bos_token": {"content": "<s>"}}' >"$dir/tokenizer_config.json"
got=$("$carat" render -m "$dir" --jsonl <<'END'
{"messages": [{"role": "user", "content": "a \"b\""}]}
{"messages": [{"role": "user"}, {"role": "user"}]}
{"messages": [], "x": 1}
{"messages"
END
)
same '"<s>user: a \"b\"\n"
{"error": "too many"}
{"error": "unknown request key '"'x'"'"}
{"error": "request: JSON, byte 11: expected '"':'"' after a key"}' "$got"

same '"<bos>"' "$(echo '{"messages": []}' | "$carat" render --jsonl --template "$dir/chat_template.jinja")"

# The requests of both APIs: mapped first, refused with the path.
got=$("$carat" render --jsonl --openai --template "$dir/chat_template.jinja" <<'END'
{"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}]}], "model": "m"}
{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}
END
)
same '"<bos>system: a\n"
{"error": "messages[0].content[0].type: '"'image_url'"' is not supported, only text"}' "$got"
got=$(echo '{"messages": [{"role": "user", "content": "q"}], "system": "s"}' |
    "$carat" render --jsonl --anthropic --template "$dir/chat_template.jinja")
same '{"error": "too many"}' "$got"
set +e
got=$("$carat" render --jsonl --anthropic --openai --template "$dir/chat_template.jinja" </dev/null 2>&1)
status=$?
set -e
same "2" "$status"

printf '\n{{ nope() }}' >"$dir/chat_template.jinja"
set +e
got=$("$carat" render -m "$dir" --jsonl </dev/null 2>&1)
status=$?
set -e
same "1 carat: chat_template.jinja:2: unknown function 'nope'" "$status $got"
