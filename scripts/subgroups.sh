#!/usr/bin/env bash
# make subgroups: OpenGL's suites on a driver with subgroups, and once more without them.
# Stable distributions have none yet: a Debian sid is made in a folder (ROOT), of which
# Mesa's zink runs OpenGL on lavapipe. As root, with debootstrap and some 700 MB. What
# is given as arguments goes to the test binary: -test.run TestSuites/Row, for example.
set -euo pipefail
. "$(dirname "$0")/env.sh"

ROOT=${ROOT:-/tmp/millrace-sid}
MIRROR=${MIRROR:-http://deb.debian.org/debian}

[ "$(id -u)" = 0 ] || { say 'subgroups: chroot is for root'; exit 1; }
command -v debootstrap >/dev/null || { say 'subgroups: no debootstrap (Debian: apt-get install debootstrap)'; exit 1; }
if [ ! -e "$ROOT/ready" ]; then
	debootstrap --variant=minbase --include=libegl1,libgl1,libgl1-mesa-dri,mesa-vulkan-drivers sid "$ROOT" "$MIRROR"
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

CGO_ENABLED=1 go test -c -o "$ROOT/opt/opengl.test" ./runtime/opengl
# Lanes of 128, 256 and 512 bits are subgroups of 4, 8 and 16.
for bits in ${BITS:-256}; do
	say "subgroups: lanes of $bits bits"
	chroot "$ROOT" env -C /opt HOME=/opt TMPDIR=/tmp MILLRACE_REQUIRE=opengl,subgroups LIBGL_ALWAYS_SOFTWARE=1 GALLIUM_DRIVER=zink \
		VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json LP_NATIVE_VECTOR_WIDTH="$bits" \
		/opt/opengl.test -test.timeout 60m "$@"
done
