#!/usr/bin/env bash
# make shipped: records the plans of examples/shipped, generates the package that
# holds them, builds the program with it, and runs it where there
# is no compiler and nothing is cached. With KEEP=1 what was generated stays, to be
# looked at; git ignores it, and the next run removes it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
example=examples/shipped
generated() { [ "${KEEP:-0}" = 1 ] || rm -f $example/plans/z_millrace_*; }
rm -f $example/plans/z_millrace_*
prepare
work=$(mktemp -d)
trap 'rm -rf "$work"; generated' EXIT
export MILLRACE_CACHE=off

say "$example as any program starts, writing down its plans"
go build -o "$work/before" ./$example
"$work/before" -record "$work/plans.bundle"

say "fusebench plans gen -o $example/plans"
go run ./cmd/fusebench plans gen -o $example/plans "$work/plans.bundle"
go vet ./$example/...

say "$example with its plans in it"
go build -o "$work/after" ./$example
PATH= "$work/after"
