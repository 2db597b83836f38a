#!/usr/bin/env bash
# make subgroups: OpenGL's and Vulkan's suites on newer drivers than stable distributions have: with subgroups in
# OpenGL, and with matrix units, bfloat16 and memory models in Vulkan. A Debian sid is made in a folder (ROOT), of which
# Mesa's zink runs OpenGL on lavapipe, and lavapipe runs Vulkan under the validation layers. As root, with debootstrap
# and some 800 MB. What is given as arguments goes to the test binaries: -test.run TestSuites/Row, for example.
#
#   APIS='opengl vulkan'   which suites run
#   BITS='128 256 512'     lanes of the driver's vectors; OpenGL's subgroups are of 4, 8 and 16
set -euo pipefail
. "$(dirname "$0")/env.sh"

ROOT=${ROOT:-/tmp/millrace-sid}
MIRROR=${MIRROR:-http://deb.debian.org/debian}

[ "$(id -u)" = 0 ] || { say 'subgroups: chroot is for root'; exit 1; }
command -v debootstrap >/dev/null || { say 'subgroups: no debootstrap (Debian: apt-get install debootstrap)'; exit 1; }
if [ ! -e "$ROOT/ready" ]; then
	debootstrap --variant=minbase --include=libegl1,libgl1,libgl1-mesa-dri,mesa-vulkan-drivers,libvulkan1 sid "$ROOT" "$MIRROR"
	touch "$ROOT/ready"
fi

# The driver writes its caches to HOME, and looks for devices and processors.
mounted=()
unmount() { for m in "${mounted[@]}"; do umount "$ROOT/$m" || true; done; }
trap unmount EXIT
for m in proc sys dev; do
	mountpoint -q "$ROOT/$m" && continue
	mount --bind "/$m" "$ROOT/$m"
	mounted+=("$m")
done

# A folder of an earlier version of this script lacks the layers and the validator.
if [ ! -e "$ROOT/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json" ] || [ ! -e "$ROOT/usr/bin/spirv-val" ]; then
	chroot "$ROOT" env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends vulkan-validationlayers libvulkan1 spirv-tools'
fi

# inside NAME=VALUE... COMMAND... runs a command in the chroot.
inside() {
	chroot "$ROOT" env -C /opt HOME=/opt TMPDIR=/tmp VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json LP_NATIVE_VECTOR_WIDTH="$bits" "$@"
}

failed=0
for api in ${APIS:-opengl vulkan}; do
	case $api in
	opengl)
		CGO_ENABLED=1 go test -c -o "$ROOT/opt/opengl.test" ./runtime/opengl
		;;
	vulkan)
		CGO_ENABLED=0 go test -c -o "$ROOT/opt/spirv.test" ./codegen/spirv
		rm -rf "$ROOT/opt/testdata"
		cp -r codegen/spirv/testdata "$ROOT/opt/testdata"
		CGO_ENABLED=0 go test -c -o "$ROOT/opt/gpu.test" ./runtime/vulkan/internal/gpu
		CGO_ENABLED=0 go test -c -o "$ROOT/opt/vulkan.test" ./runtime/vulkan
		CGO_ENABLED=0 go build -o "$ROOT/opt/fusebench" ./cmd/fusebench
		;;
	*)
		say "subgroups: there are no suites of $api"
		exit 1
		;;
	esac
	for bits in ${BITS:-256}; do
		say "subgroups: $api, lanes of $bits bits"
		case $api in
		opengl)
			inside MILLRACE_REQUIRE=opengl,subgroups LIBGL_ALWAYS_SOFTWARE=1 GALLIUM_DRIVER=zink /opt/opengl.test -test.timeout 60m "$@" || failed=1
			;;
		vulkan)
			inside /opt/fusebench devices -v
			# Stable validators do not know matrices.
			inside MILLRACE_REQUIRE=matrices /opt/spirv.test -test.run 'TestMatrices|TestValid' || failed=1
			# The layers are required, as in CI.
			inside CI=true MILLRACE_REQUIRE=vulkan /opt/gpu.test -test.timeout 20m "$@" || failed=1
			inside CI=true MILLRACE_VULKAN=emulated MILLRACE_REQUIRE=vulkan,subgroups,matrices /opt/vulkan.test -test.timeout 60m "$@" || failed=1
			;;
		esac
	done
done
exit $failed
