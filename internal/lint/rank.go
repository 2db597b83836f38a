package lint

import (
	"fmt"
	"slices"
	"strings"
)

// ranks orders the packages: imports go strictly down. The table equals that of
// docs/architecture.md.
var ranks = map[string]int{
	"cmd/fusebench":             16,
	"bench/peers":               16,
	"optim":                     15,
	"dist/local":                15,
	"dist/disttest":             15,
	"dist/mpi":                  15,
	"dist":                      14,
	"dist/files":                14,
	"nn":                        13,
	"linalg":                    13,
	"autodiff":                  12,
	"data":                      12,
	"npy":                       12,
	"gonumx":                    12,
	"imagex":                    12,
	"debug":                     12,
	"safetensors":               12,
	"serve":                     12,
	".":                         11,
	"stream":                    10,
	"internal/engine/exec":      9,
	"internal/engine/planstore": 8,
	"autotune":                  7,
	"internal/engine/memory":    6,
	"plancache/lookup":          6,
	"internal/engine/device":    5,
	"fusion":                    4,
	"codegen/wgsl":              4,
	"codegen/native/amd64":      4,
	"codegen/native/arm64":      4,
	"codegen/glsl":              4,
	"codegen/spirv":             4,
	"segment":                   3,
	"queue":                     3,
	"codegen/native":            3,
	"codegen/cgo":               3,
	"codegen/shader":            3,
	"codegen":                   2,
	"runtime":                   1,
	"plancache":                 1,
	"internal/operror":          1,
	"internal/engine/jobqueue":  0,
	"ir":                        0,
}

// public are the ranked packages that users import.
var public = map[string]bool{".": true, "autodiff": true, "data": true, "npy": true, "safetensors": true, "nn": true, "optim": true, "linalg": true, "gonumx": true, "imagex": true, "debug": true, "serve": true, "dist": true, "dist/local": true, "dist/mpi": true, "dist/files": true}

// drivers register themselves and may import codegen and its printers. Their sub-folders are parts
// of them.
var drivers = map[string]bool{
	"runtime/cpu":    true,
	"runtime/webgpu": true,
	"runtime/opengl": true,
	"runtime/vulkan": true,
	"runtime/null":   true,
}

// driverRank is that of the highest printer.
const driverRank = 4

// importsDriver names the ranked packages that may import a driver outside of tests, and the
// drivers.
var importsDriver = map[string][]string{
	".":             {"runtime/cpu"},
	"cmd/fusebench": {"runtime/cpu", "runtime/webgpu", "runtime/opengl", "runtime/vulkan", "runtime/null"},
}

// rooms orders the packages below runtime/cpu/internal: imports among them go strictly down. The
// table equals that of docs/architecture/cpu.md.
var rooms = map[string]int{
	"contract": 2,
	"rows":     2,
	"scatter":  2,
	"ccode":    1,
	"fold":     1,
	"interp":   1,
	"jit":      0,
	"memory":   0,
	"operands": 0,
	"replay":   1,
	"threads":  0,
}

const roomsDir = "runtime/cpu/internal/"

// CheckRooms finds rooms of the CPU device without a rank, and imports that do not go down.
func (t *Tree) CheckRooms() []string {
	var bad []string
	for _, dir := range t.Dirs() {
		room, ok := strings.CutPrefix(dir, roomsDir)
		if !ok || onlyTests(t.Pkgs[dir]) {
			continue
		}
		rank, ranked := rooms[room]
		if !ranked {
			bad = append(bad, fmt.Sprintf("%s: no rank; give it one in internal/lint/rank.go and docs/architecture/cpu.md", dir))
			continue
		}
		for _, im := range t.Pkgs[dir].Imports(false) {
			to, _ := folder(im)
			if below, ok := strings.CutPrefix(to, roomsDir); ok && rooms[below] >= rank {
				bad = append(bad, fmt.Sprintf("%s (rank %d) imports %s (rank %d): imports go down", dir, rank, to, rooms[below]))
			}
		}
	}
	return bad
}

// driverOf returns the driver a folder belongs to, or "".
func driverOf(dir string) string {
	for d := range drivers {
		if dir == d || strings.HasPrefix(dir, d+"/") {
			return d
		}
	}
	return ""
}

// floats reports whether a folder has no fixed rank: it may be imported wherever its own imports
// allow. internal/ holds helpers; other commands and programs, including those of bench/, are not
// imported.
func floats(dir string) bool {
	if _, ranked := ranks[dir]; ranked {
		return false
	}
	return strings.HasPrefix(dir, "internal/") || strings.Contains(dir, "/internal/") ||
		strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "examples/") || strings.HasPrefix(dir, "bench/")
}

// CheckRanks finds imports that go up or sideways, forbidden imports of drivers, and packages
// without a rank.
func (t *Tree) CheckRanks() []string {
	var bad []string
	for _, dir := range t.Dirs() {
		pkg := t.Pkgs[dir]
		if len(pkg.Imports(false)) == 0 && onlyTests(pkg) {
			continue
		}
		rank, ranked := ranks[dir]
		own := driverOf(dir)
		switch {
		case own != "":
			rank = driverRank + 1 // printers are below
		case !ranked && floats(dir):
			continue
		case !ranked:
			bad = append(bad, fmt.Sprintf("%s: no rank; give it one in internal/lint/rank.go and docs/architecture.md", dir))
			continue
		}
		for _, im := range pkg.Imports(false) {
			to, ok := folder(im)
			if !ok {
				continue
			}
			if d := driverOf(to); d != "" {
				if d != own && !contains(importsDriver[dir], to) {
					bad = append(bad, fmt.Sprintf("%s imports driver %s: drivers are blank imports of programs", dir, to))
				}
				continue
			}
			if own != "" && !driverMayImport(to) {
				bad = append(bad, fmt.Sprintf("driver %s imports %s: a driver sees ir, runtime, codegen and its printers", dir, to))
				continue
			}
			if r := t.effectiveRank(to, map[string]bool{}); r >= rank {
				bad = append(bad, fmt.Sprintf("%s (rank %d) imports %s (rank %d): imports go down", dir, rank, to, r))
			}
		}
	}
	return bad
}

func driverMayImport(to string) bool {
	return to == "ir" || to == "runtime" || to == "codegen" || strings.HasPrefix(to, "codegen/") || floats(to)
}

// effectiveRank is a folder's rank, or for a floating folder the highest rank among its imports: an
// internal package must not hide an import.
func (t *Tree) effectiveRank(dir string, seen map[string]bool) int {
	if r, ok := ranks[dir]; ok {
		return r
	}
	if driverOf(dir) != "" {
		return driverRank
	}
	pkg := t.Pkgs[dir]
	if pkg == nil || seen[dir] {
		return -1
	}
	seen[dir] = true
	rank := -1
	for _, im := range pkg.Imports(false) {
		if to, ok := folder(im); ok {
			rank = max(rank, t.effectiveRank(to, seen))
		}
	}
	return rank
}

func onlyTests(p *Pkg) bool {
	return !slices.ContainsFunc(p.Files, func(f *File) bool { return !f.Test && !f.Ignore })
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}
