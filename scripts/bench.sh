#!/usr/bin/env bash
# make bench: the main job. Arguments go to fusebench gelu.
set -euo pipefail
. "$(dirname "$0")/env.sh"
prepare
say "go run ./cmd/fusebench gelu $*"
exec go run ./cmd/fusebench gelu "$@"
