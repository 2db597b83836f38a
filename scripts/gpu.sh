#!/usr/bin/env bash
# make gpu: what is measured on a graphics card that is at hand for a short time. Two steps:
#
#   scripts/gpu.sh build     builds programs and tests into DIR, on a machine with Go
#   scripts/gpu.sh run OUT   runs them on the machine with the card, and writes to the folder OUT
#
# The second step needs this tree, DIR, bash and the card's driver; no Go, no compiler. It ends after GPU_SECONDS at the
# latest. A part that fails, or that the machine has nothing for, is named in OUT/summary.txt, and the next part runs.
#
#   DIR=dist/gpu       what build writes: copy it along with the tree
#   GPU_SECONDS=540    most time of a run
#   GPU_SMALL=1        small tensors and few rounds: tries the script where the "card" is a processor
#   PYTHON=python3     a Python with PyTorch, if there is one
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
DIR=${DIR:-dist/gpu}

build() {
	set -e
	. scripts/env.sh
	need_go
	local to
	to=$(mktemp -d)
	# shellcheck disable=SC2064 # the folder of now
	trap "rm -rf '$to'" EXIT
	local go=(go build -buildvcs=true -trimpath -ldflags='-s -w') test=(go test -c -trimpath -ldflags='-s -w')
	CGO_ENABLED=0 "${go[@]}" -o "$to/fusebench" ./cmd/fusebench
	CGO_ENABLED=0 "${test[@]}" -o "$to/gpu.test" ./runtime/vulkan/internal/gpu
	CGO_ENABLED=0 "${test[@]}" -o "$to/vulkan.test" ./runtime/vulkan
	# A program with OpenGL does not start where libGL is missing, so WebGPU has one of its own.
	if builds_cgo; then
		CGO_ENABLED=1 "${go[@]}" -o "$to/fusebench-webgpu" ./cmd/fusebench
		if have_gl; then
			CGO_ENABLED=1 "${go[@]}" -tags opengl -o "$to/fusebench-opengl" ./cmd/fusebench
		else
			say "no OpenGL headers: built without OpenGL"
		fi
	else
		say "cgo does not build here: built without WebGPU and OpenGL"
	fi
	git describe --always --dirty >"$to/commit" 2>/dev/null || echo unknown >"$to/commit"
	mkdir -p "$DIR"
	tar -czf "$DIR/programs.tar.gz" -C "$to" .
	ls -l "$to" "$DIR/programs.tar.gz" >&2
}

note() { printf '%s\n' "$*" | tee -a "$out/summary.txt" >&2; }

# part NAME SECONDS FILE COMMAND... runs a part for so many seconds at most, and fewer if the run's time ends. FILE below
# OUT gets what it prints, FILE.err its errors.
part() {
	local name=$1 limit=$2 file=$3 rc=0 from=$SECONDS left=$((total - SECONDS))
	shift 3
	if ((left < 3)); then
		note "$name: left out, the time is over"
		return 1
	fi
	((limit < left)) || limit=$left
	timeout -k 5 "$limit" "$@" >"$out/$file" 2>"$out/$file.err" </dev/null || rc=$?
	[ -s "$out/$file" ] || rm -f "$out/$file"
	[ -s "$out/$file.err" ] || rm -f "$out/$file.err"
	case $rc in
	0) note "$name: done in $((SECONDS - from)) s" ;;
	124 | 137) note "$name: ENDED after its $limit s" ;;
	127) note "$name: MISSING: there is no $1 here" ;;
	2) if grep -qs '^panic: test timed out' "$out/$file" "$out/$file.err"; then
			note "$name: ENDED after $((SECONDS - from)) s, in $(grep -hs -A 9 'running tests:' "$out/$file" "$out/$file.err" | grep -E '^[[:space:]]+Test.*/' | tail -n 1 | tr -d '[:space:]')"
		else
			note "$name: FAILED after $((SECONDS - from)) s: $(tail -n 1 "$out/$file.err" 2>/dev/null | cut -c 1-200)"
		fi ;;
	*) note "$name: FAILED with status $rc after $((SECONDS - from)) s: $(tail -n 1 "$out/$file.err" 2>/dev/null | cut -c 1-200)" ;;
	esac
	return $rc
}

# failures lists the tests that a log says have failed.
failures() { grep -hE '^ *--- FAIL' "$@" 2>/dev/null | sed 's/^ *//' | sort -u; }

# suite PROGRAM DEVICE NAME SECONDS FLAGS... times a suite of fusebench, on a device with the option $option, if any. NAME
# is the suite, perhaps with -large, a dtype or a precision.
suite() {
	local program=$bin/$1 device=$2 name=$3 limit=$4
	shift 4
	if [ ! -x "$program" ]; then
		note "$name on $device: MISSING: ${program##*/} was not built"
		return
	fi
	local warm=(-runs 100 -warmup 1500 -budget 4s)
	[ -z "${GPU_SMALL:-}" ] || warm=(-runs 10 -warmup 1 -budget 4s)
	# A program that fails with one variant still writes the others.
	part "$name on $device" "$limit" "$name-$device.txt" "$program" "${name%%-*}" -device "$device${option:+:$option}" -modes fused "${warm[@]}" \
		-note "$card" -format json -o "$out/tables/$name-$device.json" "$@"
}

# table PROGRAM DEVICE times all suites on a device.
table() {
	local shape=() matmul=256,1024,2048,4096,1024+gelu,4096+gelu mlp=() attention=() conv=()
	if [ -n "${GPU_SMALL:-}" ]; then
		shape=(-shape 4,64,256) matmul=64,128,64+gelu
		mlp=(-shape 32,64,128) attention=(-shape 1,2,128,32) conv=(-shape 1,8,16,16)
	fi
	local s
	for s in gelu softmax layernorm reduce; do
		suite "$1" "$2" $s 40 "${shape[@]}"
	done
	suite "$1" "$2" matmul 60 -variants $matmul
	suite "$1" "$2" mlp 40 "${mlp[@]}"
	suite "$1" "$2" attention 40 -variants plain,causal "${attention[@]}"
	suite "$1" "$2" conv 40 "${conv[@]}"
}

# halves times 16-bit floats: products first.
halves() {
	local shape=() matmul=1024,2048,4096,8192 t s
	[ -z "${GPU_SMALL:-}" ] || shape=(-shape 4,64,256) matmul=64,128
	for t in float16 bfloat16; do
		suite "$1" "$2" matmul-$t 40 -dtype $t -variants $matmul
	done
	for t in float16 bfloat16; do
		for s in gelu softmax layernorm; do
			suite "$1" "$2" $s-$t 30 -dtype $t "${shape[@]}"
		done
		suite "$1" "$2" reduce-$t 30 -dtype $t "${shape[@]}" -variants sum,sum-0,sum-1,sum-2
	done
}

# parts times products of float32 by bfloat16 parts, by the device's matrix units.
parts() {
	local matmul=1024,2048,4096,8192 p
	[ -z "${GPU_SMALL:-}" ] || matmul=64,128
	for p in bf16x6 bf16x3; do
		option=precision=$p suite "$1" "$2" matmul-$p 40 -variants $matmul
	done
}

# large times four times as many elements.
large() {
	local shape=128,512,2048 s
	[ -z "${GPU_SMALL:-}" ] || shape=8,64,256
	for s in gelu softmax layernorm; do
		suite "$1" "$2" $s-large 40 -shape $shape
	done
	suite "$1" "$2" reduce-large 40 -shape $shape -variants sum,sum-0,sum-1,sum-2
}

# reports lists the reports of suites, all devices, with at least one figure. Its operand is -large, a dtype as -float16, a
# precision as -bf16x6, or nothing.
reports() {
	local d s f
	for d in vulkan webgpu opengl torch; do
		for s in gelu softmax layernorm reduce matmul mlp attention conv; do
			f=tables/$s$1-$d.json
			! grep -qs '"samples_ms"' "$f" || printf '%s ' "$f"
		done
	done
}

# page writes a page with a block for each table, which fusebench tables fills.
page() {
	local all part vulkan title suffix head='modes: fused, eager, compiled -->' end='<!-- end -->'
	all=$(cd "$out" && reports '')
	if [ -z "$all" ]; then
		note 'page: left out, there are no reports'
		return
	fi
	{
		printf '# %s\n\nMedians in ms, hot, float32. The columns are devices, and PyTorch on the same card.\n\n' "$card"
		printf '<!-- medians: %s; %s\n%s\n' "${all% }" "$head" "$end"
		for suffix in -float16 -bfloat16 -bf16x6 -bf16x3 -large; do
			part=$(cd "$out" && reports $suffix) title=${suffix#-}
			case $suffix in
			-bf16*) title="float32 with precision=$title" ;;
			-large) title='Four times as many elements' ;;
			esac
			[ -z "$part" ] || printf '\n## %s\n\n<!-- medians: %s; %s\n%s\n' "$title" "${part% }" "$head" "$end"
			all+=$part
		done
		vulkan=$(tr ' ' '\n' <<<"$all" | grep -e -vulkan | tr '\n' ' ')
		[ -z "$vulkan" ] || printf '\n## Vulkan\n\n<!-- table: %s; columns: %s -->\n%s\n' "${vulkan% }" \
			'suite, variant, dtype, shape, median ms, min ms, × copy, kernels, runs, max error' "$end"
	} >"$out/page.md"
	part 'page' 20 page.txt "$bin/fusebench" tables "$out/page.md"
}

run() {
	total=${GPU_SECONDS:-540}
	mkdir -p "$1/tables"
	out=$(cd "$1" && pwd) bin=$(mktemp -d)
	trap 'rm -rf "$bin"' EXIT
	tar -xzf "$DIR/programs.tar.gz" -C "$bin" || exit
	rm -f "$out"/*.txt "$out"/*.err "$out"/*.md "$out"/tables/*
	: >"$out/summary.txt"
	card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 | sed 's/, /, driver /')
	card=${card:-$("$bin/fusebench" devices 2>/dev/null | sed -n 's/^vulkan *present *//p')}
	card=${card:-no card}
	note "$(date -u +%F), $card, $(uname -sm), $(nproc) cores; commit $(cat "$bin/commit"); at most $total s"

	part 'nvidia-smi' 20 nvidia-smi.txt nvidia-smi
	part 'vulkaninfo' 20 vulkaninfo.txt vulkaninfo --summary
	part 'devices' 60 devices.txt "$bin/fusebench" devices -v
	part 'contract' 60 contract.txt env -C runtime/vulkan/internal/gpu "$bin/gpu.test" -test.v -test.timeout 55s
	table fusebench vulkan
	halves fusebench vulkan
	parts fusebench vulkan
	part 'PyTorch' 150 torch.txt "${PYTHON:-python3}" scripts/gpu_torch.py --out "$out/tables" ${GPU_SMALL:+--small}
	local runs='-test.benchtime 300x -test.count 3'
	[ -z "${GPU_SMALL:-}" ] || runs='-test.benchtime 20x'
	# With the device's settings one by one: what each costs or gains.
	local set
	for set in '' fence nopush norobust; do
		# shellcheck disable=SC2086 # flags
		part "launches ${set:-as they are}" 25 "launches${set:+-$set}.txt" env -C runtime/vulkan MILLRACE_VULKAN=$set \
			"$bin/vulkan.test" -test.run '^$' -test.bench Suites/Run $runs
	done
	for set in '' onequeue; do
		# shellcheck disable=SC2086 # flags
		part "uploads ${set:-as they are}" 20 "uploads${set:+-$set}.txt" env -C runtime/vulkan/internal/gpu MILLRACE_VULKAN=$set \
			"$bin/gpu.test" -test.run '^$' -test.bench Uploads ${runs/300x/30x}
	done
	large fusebench vulkan
	table fusebench-webgpu webgpu
	table fusebench-opengl opengl
	# What time is left.
	part 'suites' 600 suites.txt env -C runtime/vulkan "$bin/vulkan.test" -test.v -test.short -test.timeout "$((total > SECONDS + 10 ? total - SECONDS - 5 : 5))s"
	failures "$out/contract.txt" "$out/suites.txt" >"$out/failures.txt"
	note "tests: $(cat "$out"/{contract,suites}.txt 2>/dev/null | grep -cE '^ *--- PASS') passed, $(grep -c . "$out/failures.txt") failed, as failures.txt lists"
	total=$((SECONDS + 20)) # the page is always written
	page
	note "$SECONDS s; $(du -sk "$out" | cut -f 1) KB in $out"
}

case "$*" in
build) build ;;
run\ ?*) run "$2" ;;
*)
	echo 'usage: scripts/gpu.sh build | run OUT' >&2
	exit 2
	;;
esac
