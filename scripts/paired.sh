#!/usr/bin/env bash
# make paired OLD=commit: times fusebench of another commit beside that of this tree, in turns, on the CPU,
# and prints for each row the median of the turns' ratios, new to old, with its 95 % interval.
# paired.sh OLD [SUITE...] takes some suites.
#
#   TURNS=11         so many turns; each starts every suite once by the old and once by the new program
#   RUN='chrt -r 1'  goes before each command that measures
set -euo pipefail
cd "$(dirname "$0")/.."
old=$1
shift
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add -q --detach "$dir/tree" "$old"
(cd "$dir/tree" && go build -trimpath -buildvcs=false -o "$dir/old" ./cmd/fusebench)
go build -trimpath -buildvcs=false -o "$dir/new" ./cmd/fusebench

# flags prints how a suite is timed, in a few seconds.
flags() {
	case $1 in
	start) echo -runs 3 -device cpu ;;
	tiny) echo -runs 7 -variants tiny,small ;;
	train) echo -device cpu -runs 5 -budget 5s -steps 0 -modes fused -how eager,recorded,bound -variants softmax,mlp,makemore-4x64,makemore-64x1,gpt-1,gru ;;
	serve) echo -device cpu -runs 5 -budget 3s -goroutines 1,8 ;;
	*) echo -device cpu -runs 7 -budget 4s -modes fused ;;
	esac
}

suites=${*:-gelu softmax layernorm reduce matmul mlp attention conv chain tiny start serve train}
for turn in $(seq "${TURNS:-11}"); do
	echo "turn $turn" >&2
	for suite in $suites; do
		order="old new"
		[ $((turn % 2)) = 0 ] || order="new old"
		for which in $order; do
			# Word splitting of RUN and of the flags is meant.
			${RUN:-} "$dir/$which" "$suite" $(flags "$suite") -format json -o "$dir/$suite.$which.$turn.json"
		done
	done
done
python3 scripts/paired.py "$dir" $suites
