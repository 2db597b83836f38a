#!/usr/bin/env bash
# make test: what a change is tried by on this machine, and in CI, or as make check,
# everything. With the names of steps as arguments, only those. Every step runs even if one before it failed; the last lines say which.
set -euo pipefail
. "$(dirname "$0")/env.sh"

CI=${CI:-false}
FUZZTIME=${FUZZTIME:-$([ "$CI" = true ] && echo 30s || echo 10s)}
HAMMER=${HAMMER:-$([ "$CI" = true ] && echo 30s || echo 10s)}
# So many fuzz targets run beside each other, each FUZZTIME by the clock, whatever
# the number of cores: on two cores that is two fifths of it on a processor.
FUZZERS=${FUZZERS:-5}

if [ "$CI" = true ]; then
	export MILLRACE_REQUIRE=${MILLRACE_REQUIRE-cpu,webgpu,opengl,vulkan,chromium,mpi}
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=$work/failed
: >"$failed"

# step NAME COMMAND...: runs it, says how long it took, and its processors.
step() {
	local name=$1 start=$SECONDS TIMEFORMAT='== %0R s by the clock, of processors %0U and of the kernel %0S'
	shift
	say "$name: $*"
	if time "$@"; then
		say "$name: ok, $((SECONDS - start)) s"
	else
		say "$name: FAILED after $((SECONDS - start)) s"
		echo "$name" >>"$failed"
	fi
}

# at_a_time N: runs the lines it reads, commands of this script that have one
# thread most of their time, N of them at once. What they print is shown as each
# ends.
at_a_time() {
	local line out
	while IFS= read -r line; do
		while (($(jobs -rp | wc -l) >= $1)); do sleep 0.2; done
		out=$(mktemp -p "$work")
		{ eval "$line" >"$out" 2>&1 || echo "$line" >>"$failed"; cat "$out" >&2; } </dev/null &
	done
	wait
}

# packages_with PATTERN: folders whose tests contain a line matching it.
packages_with() {
	grep -rlE --include='*_test.go' "$1" . | grep -v /testdata/ | sed 's|/[^/]*$||' | sort -u
}

# remember_c has ccache, where there is one, remember what C the go command has
# compiled. A package is compiled anew with its tests, and as a user's dependency,
# with its C, which is the same to the last bit and takes minutes; what differs is
# the seed that the go command makes of a package's name, and the folder. It goes
# by the compiler's name in ccache's folder, as the linker takes a compiler of one
# word only for what it is. Tests compile kernels with the compiler itself: their
# environment has no CC from here.
remember_c() {
	local cc settings
	cc=/usr/lib/ccache/$(go env CC)
	if [ -n "${CC:-}" ] || [ "$CGO_ENABLED" = 0 ] || [ ! -x "$cc" ]; then return; fi
	export CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=random_seed
	[ "$CI" = false ] || export CCACHE_DIR=$work/ccache # whatever home there is
	if ! echo 'int x;' | "$cc" -x c -c -o "$work/x.o" -; then
		say "ccache: not used, as it does not work here"
		return
	fi
	settings=$(go env GOENV)
	cat "$settings" >"$work/goenv" 2>/dev/null || true
	export GOENV=$work/goenv
	go env -w CC="$cc"
}

formatted() {
	local bad
	bad=$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -print0 | xargs -0 gofmt -l)
	[ -z "$bad" ] || { printf 'gofmt -w would change:\n%s\n' "$bad"; return 1; }
}

# go vet compiles every package and checks all that go test would check. So every go test below has
# -vet=off: with it on, each set of build flags is vetted once more, the standard library included.
vet() { step vet go vet ./...; }
rules() { step rules go test -vet=off -count=1 ./internal/lint; }

lint() {
	step gofmt formatted
	if [ "$CI" = true ]; then step tidy go mod tidy -diff; fi
	printf '%s\n' vet rules | at_a_time 2
}

unit() {
	step test go_test_all
	# Without cgo it is nocgo's.
	step vulkan-cgo go test -vet=off -timeout 20m -short -run 'TestSuites/^(Copy|Ops|RowKernels|EngineFuses)$|TestNoDriver' ./runtime/vulkan
}

# go_test_all runs the tests of all packages but the house rules, which lint has run. The longest come first:
# the others find their place beside them.
go_test_all() {
	# shellcheck disable=SC2046 # a list of packages
	go test -vet=off -timeout 20m ./runtime/cpu ./internal/testing/apitest ./runtime/webgpu ./runtime/opengl ./autodiff ./cmd/fusebench ./stream $(go list ./... | grep -v '/internal/lint$\|/runtime/vulkan$\|/dist/mpi$\|/examples/dp$')
}

# mpi runs ranks under the launchers of Open MPI and MPICH. Without one its tests are skipped.
mpi() {
	step mpi go test -vet=off -count=1 -timeout 20m ./dist/mpi ./examples/dp
	[ "$CGO_ENABLED" = 0 ] || step mpi-nocgo env CGO_ENABLED=0 go test -vet=off -count=1 -timeout 20m -run 'Collectives|Signals|StoppedRanks' ./dist/mpi ./examples/dp
}

# On amd64 the CPU device makes machine code, with cgo or without. Here kernels are C's, in
# the tests of the device that have each a few of them; and C has an instruction for fused
# multiply-add, without which contractions of floats are not C's.
in_c() {
	if [ "$(go env CGO_ENABLED)" = 0 ] || [ "$(go env GOARCH)" != amd64 ]; then return; fi
	step test-c-programs env PROGRAMS=8 COMPILED_PROGRAMS=6 go test -vet=off -timeout 20m -run '^TestRandomPrograms(Compiled|Forced|Flush)$' ./internal/testing/apitest
	step test-c env MILLRACE_COMPILE=c go test -vet=off -short -timeout 20m -run 'Random|Rows|Dot|Scatter|Chain|Waves|Prepared|Stream|Fault' ./runtime/cpu
	! grep -qw fma /proc/cpuinfo 2>/dev/null ||
		step test-c-fma env MILLRACE_LEVEL=none CGO_CFLAGS='-O2 -g -mfma' go test -vet=off -short -timeout 20m -run 'Contract|Dot|Chain|Choices|Facts' ./runtime/cpu ./runtime/cpu/internal/contract
}

# Without cgo there is no WebGPU and no C; all else is what other tests have. So here it is run with fewer instructions
# where there are several levels, and by the tests in which the device counts: its own,
# those of the engine, and those of whole programs. (contraction has the interpreter alone.) Errors of
# calls and optimizers are the same Go.
# Suites of Vulkan run here: it is the device for programs without cgo.
nocgo() {
	local level=
	step nocgo-vet env CGO_ENABLED=0 go vet ./...
	if [ "$(go env GOARCH)" = amd64 ] && grep -qw avx512dq /proc/cpuinfo 2>/dev/null; then level=avx2; fi
	step nocgo-test env CGO_ENABLED=0 MILLRACE_LEVEL=$level MILLRACE_REQUIRE="${MILLRACE_REQUIRE:+cpu,vulkan,narrow}" \
		go test -vet=off -short -timeout 20m ./runtime/vulkan ./runtime/cpu ./runtime/cpu/internal/contract ./codegen/native/... ./internal/testing/apitest ./stream . ./cmd/fusebench
	# A system without the drivers, whose programs run here all the same.
	[ "$(go env GOOS)/$(go env GOARCH)" != linux/amd64 ] ||
		step stubs env CGO_ENABLED=0 GOARCH=386 go test -vet=off -run '^TestStub$' ./runtime/vulkan ./runtime/webgpu ./runtime/opengl ./dist/mpi
}

# These tests compare launches with the oracle, one launch after another. Their only concurrency is
# in C or on the GPU, where the race detector sees nothing, and it makes their oracles ten times
# slower.
one_by_one='^Test(BlockFunctions|Bytes|ContractSequence|Contract(Single|Narrow)|DotOnePanel|DotShort|DotWalks|Evaluators|ExtremaOfZeros|FFTOfPrimes|GoAllocates|Halves|MachineArgs|MachineFolds|ShortRows|Totals|TotalsRandom|(Chain)?Choices|Contract(Denormal|Large|Mask|Zeros)?|DotKernels|Every(Half|Op)|Hidden|KernelAccesses|Patterns|PiecesTogether|RandomKernels|Reduce(Columns|NaN|Random)?|Row(Ops|Patterns|s)|Scans|Scatter(Reach)?|Shipped|ShortColumns|(Far)?CallsAreShort)$'
one_by_one+='|^Test(Suites|Isolated)$/^(BeyondOneBinding|Choices|Division|Dot|DotApart|DotDims|DotIntegers|DotFused|EngineBoundSteps|EngineGrads|EngineLimits|EngineOptim|EngineRecorded|EngineRecordedSteps|IndexedLoads|Reduce|ReduceColumns|ReduceNaN|ReduceRandom|RowKernels|RowKernelsCut|RowKernelsShared|RowOps|RowsTakenTogether|Scatter|ScatterReach)$'

race() {
	if [ "$HAVE_RACE" = 0 ]; then
		say "race: skipped, -race does not build here"
		return
	fi
	step race go_test_race
	# Most suites of Vulkan launch one after another, and the validation layers take their time. The other
	# GPUs have no recordings.
	step race-vulkan go test -race -vet=off -short -timeout 20m -run '^Test(Suites|Apart)$/^(Copy|Transfers|Concurrent|Prepared|EngineRecorded|EngineRecordedFaults|EngineRecordedSteps|Closed|Lost)$' ./runtime/vulkan
}

go_test_race() {
	# shellcheck disable=SC2046 # a list of packages
	go test -race -vet=off -short -timeout 20m -skip "$one_by_one" ./runtime/cpu ./runtime/webgpu ./runtime/opengl . ./internal/testing/calls ./stream/... ./queue/... ./dist $(go list ./runtime/... | grep -v '/runtime/vulkan$')
}

# Whether it compiles and links elsewhere does not depend on how well; without the
# optimizer it takes two thirds of the time. (What is built for linux/arm64 is run
# by contraction.)
cross() {
	local target flags
	for target in linux/386 windows/amd64 darwin/arm64 linux/arm64 js/wasm; do
		flags=(-gcflags='all=-N -l')
		[ $target != linux/arm64 ] || flags=()
		(step "build-$target" builds_for "$target" ${flags[@]+"${flags[@]}"})
	done
}

# builds_for TARGET FLAGS...: go list -export compiles every package, those of programs too. Of the
# programs fusebench alone is linked: it has the engine and all drivers, which the others share.
builds_for() {
	export CGO_ENABLED=0 GOOS="${1%/*}" GOARCH="${1#*/}"
	go list -export "${@:2}" ./... >/dev/null && go build -o "$work/fusebench" -ldflags=-w "${@:2}" ./cmd/fusebench
}

# These builds test how Go compiles arithmetic. Tests of other subjects are left out: choices and
# facts; large, masked, sparse and single contractions and sequences of them, which share out work,
# leave it out or reuse memory around the arithmetic that TestContract runs; denormals, where the
# oracle is compared with itself; memory. TestReduce, TestRows and TestRandomKernels run the arithmetic of
# short columns, random rows and totals. unit and nocgo run all of them.
not_arithmetic='^Test(Choices|DotOnePanel|FactsDecide|Contract(Large|Single|Mask|Sequence|Zeros)|Evaluators|FlushClose|GoAllocates|LargeResultsPassCaches|Needs|PreparedWaves|ShortColumns|Random|Totals)$'

# What is run of machine code for arm64.
neon='^Test(Call|MXCSR|Faults|FreedCode|Hammer|EveryOp|RandomKernels|RandomExact|RandomLoads|NothingBeyond|GuardedEdges|Pressure|EmptyAxis|LeastFault|LoadedDivisors|Flushed(Choices|Rounding)|RandomFlushed|MachineFolds|FoldingCode|NoExecutableMemory|RefusedKernel|Rows|Transposed|KernelAccesses'
neon+='|Tile|Transpose|Along|Dots|Scan|Walk|Contract(|Code|Denormal|Single|RoundedUp|Zeros))$'

# Go contracts a*b+c on these two; tensors' bits must not notice. C does not see
# GOAMD64, so that there is no need to build it for that again.
contraction() {
	local steps=() qemu
	if [ "$(go env GOARCH)" = amd64 ] && grep -qw fma /proc/cpuinfo 2>/dev/null && grep -qw bmi2 /proc/cpuinfo; then
		steps+=("step goamd64-v3 env CGO_ENABLED=0 GOAMD64=v3 go test -vet=off -short -timeout 20m -skip '$not_arithmetic' ./ir ./runtime/cpu ./runtime/cpu/internal/contract")
	else
		say "goamd64-v3: skipped, this machine is below x86-64-v3"
	fi
	qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
	if [ -n "$qemu" ]; then
		steps+=("step arm64 env CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go test -vet=off -short -timeout 20m -skip '$not_arithmetic' -exec $qemu ./ir ./runtime/cpu ./runtime/cpu/internal/contract")
		# Machine code there is had by asking for it. An emulator shows what it computes
		# and what faults in it become, but neither speed nor what caches do.
		steps+=("step arm64-neon env CGO_ENABLED=0 MILLRACE_LEVEL=neon GOOS=linux GOARCH=arm64 go test -vet=off -short -timeout 20m -run '$neon' -exec $qemu ./internal/machine ./codegen/native/... ./runtime/cpu ./runtime/cpu/internal/contract")
		if command -v aarch64-linux-gnu-gcc >/dev/null; then
			steps+=("step arm64-c env CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc GOOS=linux GOARCH=arm64 go test -vet=off -short -timeout 20m -run '^TestContract(|Code|Source|Probed|Denormal|RoundedUp|Zeros)\$' -exec '$qemu -L /usr/aarch64-linux-gnu' ./runtime/cpu/internal/contract")
		fi
	else
		say "arm64: skipped, no qemu-aarch64-static (Debian: qemu-user-static)"
	fi
	((${#steps[@]} == 0)) || printf '%s\n' "${steps[@]}" | at_a_time 2
}

# fuzz_target NAME FOLDER. Where the time ends while go test is busy with an input
# it says "context deadline exceeded" and fails, with nothing found. By default it takes up
# to a minute to make one new input shorter, which is all the time there is.
fuzz_target() {
	local log
	log=$(mktemp -p "$work")
	CGO_ENABLED=0 go test -vet=off -run '^$' -parallel 1 -fuzz "^$1\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 100x "$2" 2>&1 | tee "$log" && return
	grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input written|panic:' "$log"
}

# Compiled one after another, as most of it is what they share.
fuzz_build() {
	local folder
	for folder in "$@"; do
		CGO_ENABLED=0 go test -c -fuzz . -o "$work/fuzz.test" "$folder" || return
	done
}

# Fuzz targets are parsers and arithmetic in Go: the engine behind them need not
# be the one with C, which every set of build flags compiles anew.
fuzz() {
	local list file name
	list=$(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | grep -v /testdata/ | sort)
	[ -n "$list" ] || { say "fuzz: no targets"; return; }
	# shellcheck disable=SC2046 # a list of folders
	step fuzz-build fuzz_build $(sed 's|/[^/]*$||' <<<"$list" | sort -u)
	while IFS=: read -r file _ name; do
		name=${name#func }
		echo "step fuzz-$name fuzz_target $name $(dirname "$file")"
	done <<<"$list" | at_a_time "$FUZZERS"
}

hammer() {
	local pkgs flags=()
	pkgs=$(packages_with '^func Test[A-Za-z0-9_]*Hammer')
	[ -n "$pkgs" ] || { say "hammer: no tests"; return; }
	[ "$HAVE_RACE" = 0 ] || flags=(-race)
	# shellcheck disable=SC2086 # a list of folders
	step hammer env HAMMER="$HAMMER" go test -vet=off ${flags[@]+"${flags[@]}"} -count=1 -parallel 3 -timeout 20m -run Hammer $pkgs
}

# hammer_server is for longer than make check has.
hammer_server() {
	local flags=()
	[ "$HAVE_RACE" = 0 ] || flags=(-race)
	step hammer-server env HAMMER="${SERVER:-10m}" go test -vet=off ${flags[@]+"${flags[@]}"} -count=1 -timeout 2h -run '^TestServerHammer$' -v ./internal/testing/apitest
}

# The nested module, with the test suite that GoMLX has for backends: how many of
# its tests pass, and how many are skipped, is printed.
gomlx_here() {
	step gomlx-vet go vet ./gomlxbackend/...
	step gomlx-test go test -vet=off -timeout 10m ./gomlxbackend/...
	step gomlx-suite go test -vet=off -count=1 -v -run '^TestSuite$' ./gomlxbackend/internal/compliance
}

# The module for ONNX models.
onnx_here() {
	step onnx-vet go vet ./onnx/...
	step onnx-test go test -vet=off -timeout 10m ./onnx/...
}

# The same with ONNX's own tests of operators, where its Python package can be had.
onnx() {
	onnx_here
	if timeout 200 scripts/onnx.sh -make; then
		step onnx-nodes scripts/onnx.sh
	else
		say "onnx-nodes: skipped, without Python's venv or a package index"
	fi
}

gomlx() {
	gomlx_here
	# A module with a workspace of its own.
	step gomlx-example go -C examples/gomlx vet ./...
	step gomlx-example-test go -C examples/gomlx test -vet=off -timeout 10m ./...
	# It is the same Go, on a device that does the same.
	step gomlx-nocgo env CGO_ENABLED=0 go vet ./gomlxbackend/...
	gomlx_newest
}

# A module with a workspace of its own, as GLFW asks for X11's headers.
windows() {
	if [ "$CGO_ENABLED" = 0 ] || [ "$TAG" != opengl ] || ! have_windows; then
		say "windows: skipped, without cgo, OpenGL's or X11's headers, or Xvfb"
		return
	fi
	step windows-vet go -C examples/filter vet ./...
	step windows-test go -C examples/filter test -vet=off -timeout 10m ./...
}

# The same with the newest versions: the newest workspace, and the Go that they ask
# for. It does not link go-webgpu's library.
gomlx_newest() {
	local newest=(env GOWORK="$PWD/gomlxbackend/newest/go.work" GOTOOLCHAIN=go1.27.4 MILLRACE_REQUIRE="${MILLRACE_REQUIRE:+cpu}")
	step gomlx-newest-vet "${newest[@]}" go vet ./gomlxbackend/...
	step gomlx-newest-test "${newest[@]}" go test -vet=off -timeout 10m ./gomlxbackend/...
	step gomlx-newest-suite "${newest[@]}" go test -vet=off -count=1 -v -run '^TestSuite$' ./gomlxbackend/internal/compliance
	# Modules with workspaces of their own, which ask for that Go themselves.
	step gomlx-programs env GOTOOLCHAIN=go1.27.4 go -C gomlxbackend/internal/programs vet ./...
	step gomlx-programs-test env GOTOOLCHAIN=go1.27.4 go -C gomlxbackend/internal/programs test -vet=off -timeout 10m ./...
	step gomlx-embed env GOTOOLCHAIN=go1.27.4 go -C examples/embed vet ./...
	step gomlx-embed-test env GOTOOLCHAIN=go1.27.4 go -C examples/embed test -vet=off -timeout 10m ./...
	# The new Go with the old versions is what the tag is for.
	step gomlx-newest-tag env GOTOOLCHAIN=go1.27.4 go vet -tags compute_go126 ./gomlxbackend/...
}

# Programs that are built, installed and run as users do: one thread, or a compiler's
# two, and long waits for the go command.
as_users_do() { printf '%s\n' readme consumer_check | at_a_time 2; }

# The tests of other builds, two steps at once: most of them end with one package that has one thread.
others() { printf '%s\n' race contraction gomlx onnx nocgo in_c as_users_do windows accuracy_sample | at_a_time 2; }

consumer_check() { step consumer-check go run ./internal/testing/consumer; }
readme() { step readme scripts/readme.sh; }
accuracy() { step accuracy go test -tags accuracy -count=1 -timeout 0 -v ./internal/testing/accuracy; }

# The same on one input in about four thousand.
accuracy_sample() { step accuracy-sample go test -tags accuracy -count=1 -timeout 20m ./internal/testing/accuracy -stride 4099; }

prepare
remember_c
# What is left out of the first list runs the same tests in other builds, or for long.
here=(lint unit mpi gomlx-here onnx-here)
# What fails soonest comes first.
everything=(lint cross unit mpi others hammer fuzz)
steps=("$@")
if [ "$*" = check ] || [ $# = 0 -a "$CI" = true ]; then
	steps=("${everything[@]}")
elif [ $# = 0 ]; then
	steps=("${here[@]}")
fi
for s in "${steps[@]}"; do
	"${s//-/_}"
done

if [ -s "$failed" ]; then
	say "failed: $(sort -u "$failed" | tr '\n' ' ')"
	exit 1
fi
say "all passed in $SECONDS s"
