#!/usr/bin/env bash
# make onnx: ONNX's own tests of operators, run by package onnx. The package onnx of Python makes them in a folder (ROOT)
# outside of the repository; with -make as the only argument that is all. Arguments go to go test: -update rewrites the counts
# in docs/guides/onnx.md.
set -euo pipefail
. "$(dirname "$0")/env.sh"

ROOT=${ROOT:-/tmp/millrace-onnx}
VERSION=1.19.1 # opset 24
PACKAGES=("onnx==$VERSION" numpy==2.4.6 protobuf==7.36.2 ml_dtypes==0.6.0 typing_extensions==4.16.0)

if [ ! -e "$ROOT/$VERSION/ready" ]; then
	python3 -m venv "$ROOT/venv"
	"$ROOT/venv/bin/pip" install -q "${PACKAGES[@]}"
	mkdir -p "$ROOT/$VERSION/node"
	"$ROOT/venv/bin/python" -W ignore -m onnx.backend.test.cmd_tools generate-data -o "$ROOT/$VERSION"
	touch "$ROOT/$VERSION/ready"
fi
[ "$*" != -make ] || exit 0
ONNX_NODES="$ROOT/$VERSION/node" go test -vet=off -count=1 -v -run '^TestNodes$' ./onnx "$@"
