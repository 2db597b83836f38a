#!/usr/bin/env bash
# make test: everything CI checks. With the names of steps as arguments, only
# those. Every step runs even if one before it failed; the last lines say which.
set -euo pipefail
. "$(dirname "$0")/env.sh"

CI=${CI:-false}
FUZZTIME=${FUZZTIME:-$([ "$CI" = true ] && echo 60s || echo 10s)}
HAMMER=${HAMMER:-$([ "$CI" = true ] && echo 30s || echo 10s)}
# All fuzz targets together get this many seconds at most: where there are more
# than FUZZTOTAL/FUZZTIME of them, each gets its equal share.
FUZZTOTAL=${FUZZTOTAL:-360}

if [ "$CI" = true ]; then
	export MILLRACE_REQUIRE=${MILLRACE_REQUIRE-cpu,webgpu}
fi

failed=()

# step NAME COMMAND...: runs it, says how long it took.
step() {
	local name=$1 start=$SECONDS
	shift
	say "$name: $*"
	if "$@"; then
		say "$name: ok, $((SECONDS - start)) s"
	else
		say "$name: FAILED after $((SECONDS - start)) s"
		failed+=("$name")
	fi
}

# packages_with PATTERN: folders whose tests contain a line matching it.
packages_with() {
	grep -rlE --include='*_test.go' "$1" . | grep -v /testdata/ | sed 's|/[^/]*$||' | sort -u
}

formatted() {
	local bad
	bad=$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -print0 | xargs -0 gofmt -l)
	[ -z "$bad" ] || { printf 'gofmt -w would change:\n%s\n' "$bad"; return 1; }
}

lint() {
	step gofmt formatted
	if [ "$CI" = true ]; then step tidy go mod tidy -diff; fi
	step vet go vet ./...
	step rules go test -count=1 ./internal/lint
}

unit() {
	step build go build ./...
	step test go test -timeout 20m ./...
}

# Without cgo there is no WebGPU, and the interpreter is plain Go.
nocgo() {
	step nocgo-build env CGO_ENABLED=0 go build ./...
	step nocgo-test env CGO_ENABLED=0 MILLRACE_REQUIRE="${MILLRACE_REQUIRE:+cpu}" go test -timeout 20m ./...
}

race() {
	if [ "$HAVE_RACE" = 0 ]; then
		say "race: skipped, -race does not build here"
		return
	fi
	step race go test -race -short -timeout 20m . ./stream/... ./queue/... ./runtime/...
}

cross() {
	local target
	for target in windows/amd64 darwin/arm64 linux/arm64 linux/386 js/wasm; do
		step "build-$target" env CGO_ENABLED=0 GOOS="${target%/*}" GOARCH="${target#*/}" go build ./...
	done
}

# Go contracts a*b+c on these two; tensors' bits must not notice.
contraction() {
	if [ "$(go env GOARCH)" = amd64 ] && grep -qw fma /proc/cpuinfo 2>/dev/null && grep -qw bmi2 /proc/cpuinfo; then
		step goamd64-v3 env GOAMD64=v3 go test -short -timeout 20m ./ir ./runtime/cpu
	else
		say "goamd64-v3: skipped, this machine is below x86-64-v3"
	fi
	local qemu
	qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
	if [ -n "$qemu" ]; then
		step arm64 env CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go test -short -timeout 20m -exec "$qemu" ./ir ./runtime/cpu
	else
		say "arm64: skipped, no qemu-aarch64-static (Debian: qemu-user-static)"
	fi
}

fuzz() {
	local list n each file name
	list=$(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | grep -v /testdata/ | sort)
	[ -n "$list" ] || { say "fuzz: no targets"; return; }
	n=$(wc -l <<<"$list")
	each=${FUZZTIME%s}
	if ((each * n > FUZZTOTAL)); then each=$((FUZZTOTAL / n)); fi
	while IFS=: read -r file _ name; do
		name=${name#func }
		step "fuzz-$name" go test -run '^$' -fuzz "^$name\$" -fuzztime "${each}s" "$(dirname "$file")"
	done <<<"$list"
}

hammer() {
	local pkgs flags=()
	pkgs=$(packages_with '^func Test[A-Za-z0-9_]*Hammer')
	[ -n "$pkgs" ] || { say "hammer: no tests"; return; }
	[ "$HAVE_RACE" = 0 ] || flags=(-race)
	# shellcheck disable=SC2086 # a list of folders
	step hammer env HAMMER="$HAMMER" go test ${flags[@]+"${flags[@]}"} -count=1 -timeout 20m -run Hammer $pkgs
}

consumer_check() { step consumer-check go run ./internal/consumer; }
readme() { step readme scripts/readme.sh; }
accuracy() { step accuracy go test -tags accuracy -count=1 -timeout 0 -v ./internal/accuracy; }

# The same on one input in about four thousand.
accuracy_sample() { step accuracy-sample go test -tags accuracy -count=1 -timeout 20m ./internal/accuracy -stride 4099; }

prepare
steps=("$@")
[ $# -gt 0 ] || steps=(lint unit accuracy-sample nocgo cross race contraction readme consumer-check hammer fuzz)
for s in "${steps[@]}"; do
	"${s//-/_}"
done

if ((${#failed[@]})); then
	say "failed: ${failed[*]}"
	exit 1
fi
say "all passed in $SECONDS s"
