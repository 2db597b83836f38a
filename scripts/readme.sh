#!/usr/bin/env bash
# Runs the commands of README.md: every line of its blocks marked ```sh that
# starts with "go run" or "make bench". (make test and scripts/test.sh are what
# is running; the Go example is compiled and run by internal/testing/consumer.) They run as
# they are written, but on shapes that take no time: a GPU in software would need a
# minute and a half for the one of make bench.
set -euo pipefail
cd "$(dirname "$0")/.."
export APT=0
lines=$(awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' README.md | grep -E '^(go run|make bench)' | sed 's/ *#.*//' | sort -u)
[ -n "$lines" ] || { echo "README.md: no commands found"; exit 1; }
while IFS= read -r line; do
	case $line in
	"make bench") line+=" ARGS='-budget 5s -shape 8,128,512'" ;;
	"go run "*gelu*) line+=" -shape 8,64,256 -runs 2" ;;
	esac
	echo "\$ $line"
	bash -c "$line" </dev/null
done <<<"$lines"
