#!/usr/bin/env bash
# make bench and make bench-all: bench.sh SUITE|all [flags of fusebench]. The
# main job is the suite gelu; all runs every suite, one after another.
set -euo pipefail
. "$(dirname "$0")/env.sh"
prepare
suite=$1
shift

# With -buildvcs the result says of which commit it is.
if [ "$suite" != all ]; then
	mkdir -p dist
	say "go run -buildvcs=true ./cmd/fusebench $suite -picture dist/$suite.html $*"
	exec go run -buildvcs=true ./cmd/fusebench "$suite" -picture "dist/$suite.html" "$@"
fi

# Does a program of one line link with OpenBLAS here?
have_openblas() {
	[ "$CGO_ENABLED" = 1 ] || return 1
	printf 'void openblas_set_num_threads(int);\nint main(void) { openblas_set_num_threads(1); }\n' |
		"${CC:-cc}" -x c -o /dev/null - -lopenblas 2>/dev/null
}

tags=()
if have_openblas; then
	tags=(-tags "openblas,$TAG")
else
	say "without OpenBLAS to compare products with (Debian: libopenblas-dev)"
fi
mkdir -p dist
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say "go build ${tags[*]} ./cmd/fusebench"
go build ${tags[@]+"${tags[@]}"} -o "$dir/fusebench" ./cmd/fusebench
failed=()
for suite in gelu softmax layernorm reduce matmul mlp attention conv; do
	say "fusebench $suite $*"
	"$dir/fusebench" "$suite" -picture "dist/$suite.html" "$@" || failed+=("$suite")
	echo
done
if ((${#failed[@]})); then
	say "failed: ${failed[*]}"
	exit 1
fi
