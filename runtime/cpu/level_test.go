//go:build cgo && unix

package cpu

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// TestLevelsDecidedOnce: what a processor must have for a level is asked for in
// one file, and is what printers take for granted there. Kernels are compiled
// for the best level of the functions that are built in.
func TestLevelsDecidedOnce(t *testing.T) {
	asks := regexp.MustCompile(`__builtin_cpu_supports\("([a-z0-9]+)"\)`)
	files, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && asks.Match(text) {
			found = append(found, f)
		}
	}
	if want := []string{"tier0_levels.c"}; !slices.Equal(found, want) {
		t.Fatalf("%v ask what the processor supports, want %v only", found, want)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for level, isa := range map[string]*cgo.ISA{"avx2": cgo.AVX2, "avx512": cgo.AVX512} {
		_, rest, _ := strings.Cut(string(text), "return mr_t0_fns_"+map[string]string{"avx2": "base", "avx512": "avx2"}[level])
		condition, _, ok := strings.Cut(rest, "return mr_t0_fns_"+level+";")
		if !ok {
			t.Fatalf("%s: no %s", found[0], level)
		}
		var asked, taken []string
		for _, m := range asks.FindAllStringSubmatch(condition, -1) {
			asked = append(asked, m[1])
		}
		for feature := range strings.SplitSeq(isa.Target, ",") {
			if !strings.HasPrefix(feature, "prefer-") { // that is advice
				taken = append(taken, feature)
			}
		}
		slices.Sort(asked)
		slices.Sort(taken)
		if !slices.Equal(asked, taken) {
			t.Errorf("%s asks for %v, kernels are printed for %v", level, asked, taken)
		}
	}
	best := 0
	for level := range levelISAs {
		if hasLevel(level) {
			best = level
		}
	}
	if isa := nativeISA(); best > 0 && isa != levelISAs[best] || best == 0 && isa.Bytes != levelISAs[0].Bytes {
		t.Errorf("kernels are for %s, the functions around them for %s", isa.Name, levelNames[best])
	}
}
