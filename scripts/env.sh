# Sourced by the other scripts: finds out what this machine has, installs what
# is missing where it may, and sets CGO_ENABLED and HAVE_RACE accordingly.
#
#   APT=0     never install anything
#   CI=true   devices are required: a missing one fails instead of being skipped

say() { printf '== %s\n' "$*" >&2; }

cd "$(dirname "${BASH_SOURCE[0]}")/.."

need_go() {
	if ! command -v go >/dev/null; then
		say "Go is missing: install Go 1.26 or later from https://go.dev/dl"
		exit 1
	fi
}

# builds_cgo [go build flags]: does a program of one line with cgo build here?
# A compiler alone proves nothing: without libc headers cgo fails all the same.
builds_cgo() {
	local dir rc=0
	dir=$(mktemp -d)
	printf 'module probe\n\ngo 1.26\n' >"$dir/go.mod"
	printf 'package main; import "C"; func main() {}\n' >"$dir/main.go"
	(cd "$dir" && CGO_ENABLED=1 go build -o probe "$@" . >log 2>&1) || rc=1
	rm -rf "$dir"
	return $rc
}

have_vulkan() {
	[ "$(uname -s)" = Linux ] || return 0 # other systems bring their own
	local dir libs
	# Not piped into grep -q: with pipefail, leaving early looks like a failure.
	libs=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
	for dir in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/share/vulkan/icd.d; do
		if compgen -G "$dir/*.json" >/dev/null && [[ $libs == *libvulkan.so.1* ]]; then
			return 0
		fi
	done
	return 1
}

# have_gl: OpenGL's headers to build with, and EGL with a driver to run.
have_gl() { pkg-config --exists gl 2>/dev/null; }
have_egl() {
	local libs
	libs=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
	[[ $libs == *libEGL.so.1* ]] && { compgen -G '/usr/share/glvnd/egl_vendor.d/*.json' || compgen -G '/etc/glvnd/egl_vendor.d/*.json'; } >/dev/null
}

# have_windows: what examples/filter is built with and shown on.
have_windows() { pkg-config --exists x11 xrandr xinerama xcursor xi xxf86vm 2>/dev/null && command -v Xvfb >/dev/null; }

# wanted lists the Debian packages that would bring what is missing.
wanted() {
	builds_cgo || printf 'gcc libc6-dev '
	have_vulkan || printf 'mesa-vulkan-drivers libvulkan1 '
	if [ "$(uname -s)" = Linux ]; then
		have_gl || printf 'libgl-dev pkg-config '
		have_egl || printf 'libegl1 libgl1-mesa-dri '
	fi
	if [ "${CI:-}" = true ]; then
		command -v objdump >/dev/null || printf 'binutils '
		command -v aarch64-linux-gnu-objdump >/dev/null || printf 'binutils-aarch64-linux-gnu '
		command -v qemu-aarch64-static >/dev/null || printf 'qemu-user-static '
		command -v ccache >/dev/null || printf 'ccache '
		command -v glslangValidator >/dev/null || printf 'glslang-tools '
		command -v spirv-val >/dev/null || printf 'spirv-tools '
		[ -e /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ] || printf 'vulkan-validationlayers '
		command -v mpirun.openmpi >/dev/null || printf 'openmpi-bin '
		command -v mpiexec.hydra >/dev/null || printf 'mpich '
		command -v chromium >/dev/null && command -v chromedriver >/dev/null || printf 'chromium chromium-driver '
		have_windows || printf 'xvfb libx11-dev libxrandr-dev libxinerama-dev libxcursor-dev libxi-dev libxxf86vm-dev '
	fi
}

install_missing() {
	local missing
	missing=$(wanted)
	[ -n "$missing" ] || return 0
	if [ "${APT:-1}" = 0 ] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		say "missing here: ${missing}(Debian's names); going on without"
		return 0
	fi
	say "installing with apt-get: ${missing}(APT=0 forbids this)"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of names
	if ! { apt-get update -qq && apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 $missing; } >&2; then
		say "apt-get failed; going on with what there is"
	fi
}

prepare() {
	need_go
	install_missing
	HAVE_RACE=0
	if [ "${CGO_ENABLED:-1}" != 0 ] && builds_cgo; then
		export CGO_ENABLED=1
		builds_cgo -race && HAVE_RACE=1
		# OpenGL is left out where its headers are missing, and is in fusebench where not.
		TAG=opengl
		if [ "$(uname -s)" != Linux ] || ! have_gl; then
			say "no OpenGL headers: built without OpenGL"
			TAG=noopengl
		fi
		export GOFLAGS="${GOFLAGS:+$GOFLAGS }-tags=$TAG"
	else
		[ "${CGO_ENABLED:-1}" = 0 ] || say "cgo does not build here: no compiled kernels, no WebGPU, no race detector"
		export CGO_ENABLED=0
	fi
	export HAVE_RACE
}
