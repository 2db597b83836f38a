#!/usr/bin/env bash
# make peers: installs the libraries that bench/peers compares with, as far as they
# can be had, below PEERS_DIR (dist/peers), and times them beside Millrace.
#
#   PEERS_DIR=DIR        where the virtual environment and Burn's build go
#   PEERS_BURN=flex,...  backends of Burn to build, where cargo is there: flex, ndarray,
#                        vulkan (the last takes three quarters of an hour); none where empty
#   ARGS                 flags of go run ./bench/peers
set -euo pipefail
. "$(dirname "$0")/env.sh"
need_go
dir=${PEERS_DIR:-dist/peers}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
python=$dir/venv/bin/python

# A library that cannot be had is left out, and the table says so.
if [ -x "$python" ] || python3 -m venv "$dir/venv"; then
	while read -r wanted; do
		case $wanted in '' | '#'*) continue ;; esac
		say "pip install $wanted"
		"$python" -m pip install --quiet --no-input "$wanted" || say "without $wanted"
	done <bench/peers/python/requirements.txt
else
	say "without Python: there is no python3 with venv"
fi

if command -v cargo >/dev/null; then
	for backend in $(tr , ' ' <<<"${PEERS_BURN-flex}"); do
		say "cargo build, Burn on $backend"
		cargo build --quiet --release --locked --manifest-path bench/peers/burn/Cargo.toml --no-default-features \
			--features "$backend" --target-dir "$dir/burn/$backend" || say "without Burn on $backend"
	done
else
	say "without Burn: there is no cargo"
fi

exec go run ./bench/peers -python "$python" -burn "$dir/burn" "$@"
