//go:build gc

package machine

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestISAOf: a level needs all its parts: each bit is left out once.
func TestISAOf(t *testing.T) {
	const (
		one   = hasFMA | hasAVX | hasF16C
		two   = hasBMI1 | hasBMI2 | hasAVX2
		wide  = has512F | has512D | has512B | has512V
		saves = savesYMM | savesZMM
	)
	if got := isaOf(^uint32(0), ^uint32(0), ^uint32(0)); got != AVX512 {
		t.Errorf("with everything: %v", got)
	}
	if got := isaOf(one, two, savesYMM); got != AVX2 {
		t.Errorf("with AVX2 alone: %v", got)
	}
	for bit := range 32 {
		without := ^(uint32(1) << bit)
		if one&^without != 0 {
			if got := isaOf(without, ^uint32(0), ^uint32(0)); got != None {
				t.Errorf("leaf 1 without bit %d: %v", bit, got)
			}
		}
		want := AVX512
		if wide&^without != 0 {
			want = AVX2
		}
		if two&^without != 0 {
			want = None
		}
		if got := isaOf(^uint32(0), without, ^uint32(0)); got != want {
			t.Errorf("leaf 7 without bit %d: %v, want %v", bit, got, want)
		}
		want = AVX512
		if saves&^without != 0 {
			want = AVX2
		}
		if savesYMM&^without != 0 {
			want = None
		}
		if got := isaOf(^uint32(0), ^uint32(0), without); got != want {
			t.Errorf("XCR0 without bit %d: %v, want %v", bit, got, want)
		}
	}
}

// TestProcessor: the level agrees with Linux's list of the processor's features.
func TestProcessor(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	want, flags := None, []string(nil)
	for line := range strings.Lines(string(text)) {
		if name, list, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			flags = strings.Fields(list)
			break
		}
	}
	has := func(names string) bool {
		for n := range strings.FieldsSeq(names) {
			if !slices.Contains(flags, n) {
				return false
			}
		}
		return true
	}
	if has("fma avx f16c bmi1 bmi2 avx2") {
		want = AVX2
		if has("avx512f avx512bw avx512dq avx512vl") {
			want = AVX512
		}
	}
	if got := processor(); got != want {
		t.Errorf("found %v, /proc/cpuinfo says %v", got, want)
	}
}
