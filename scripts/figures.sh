#!/usr/bin/env bash
# make figures: takes the figures of docs/benchmarks afresh, on this machine, and writes the tables and
# pictures that are made of them: twenty minutes. figures.sh [SUITE-WHERE...] takes some, as in gelu-cpu. Commit first:
# the data says of which commit it is.
#
#   RUN='chrt -r 1'  goes before each command that measures, where others are at work on the machine
#   NOTE='...'       is what the reports say of that
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
mkdir -p "$bin/cgo" "$bin/nocgo" docs/benchmarks/data
go build -buildvcs=true -tags opengl -o "$bin/cgo/fusebench" ./cmd/fusebench
CGO_ENABLED=0 go build -buildvcs=true -o "$bin/nocgo/fusebench" ./cmd/fusebench

# take BUILD NAME SUITE FLAGS... writes docs/benchmarks/data/NAME.json.
take() {
	local build=$1 name=$2
	shift 2
	[[ " $wanted " == *" $name "* || $wanted == all ]] || return 0
	echo "$name: fusebench $*" >&2
	# Word splitting of RUN is meant.
	(cd docs/benchmarks && PATH="$bin/$build:$PATH" ${RUN:-} fusebench "$@" -format json -o "data/$name.json" ${NOTE:+-note "$NOTE"})
}

wanted=${*:-all}
for build in cgo nocgo; do
	where=cpu
	[ $build = cgo ] || where=nocgo
	for suite in gelu softmax layernorm reduce matmul mlp attention; do
		modes=fused,unfused
		case $suite in reduce | matmul) modes=fused ;; esac
		take $build $suite-$where $suite -device cpu -runs 15 -budget 30s -modes $modes
	done
done
gpu=webgpu,opengl
take cgo gelu-gpu gelu -device $gpu -runs 11 -warmup 1 -budget 2m
take cgo softmax-gpu softmax -device $gpu -runs 11 -warmup 1 -budget 90s
take cgo layernorm-gpu layernorm -device $gpu -runs 11 -warmup 1 -budget 90s
take cgo reduce-gpu reduce -device $gpu -runs 11 -warmup 1 -budget 1m -modes fused
take cgo matmul-gpu matmul -device $gpu -runs 11 -warmup 1 -budget 2m -modes fused
take cgo mlp-gpu mlp -device $gpu -runs 11 -warmup 1 -budget 2m -modes fused
take cgo attention-gpu attention -device $gpu -runs 11 -warmup 1 -budget 2m -modes fused

mapfile -t pages < <(grep -rl --include="*.md" "^<!-- end -->$" README.md docs)
"$bin/nocgo/fusebench" tables "${pages[@]}"
