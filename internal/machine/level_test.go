package machine

import (
	"os"
	"strings"
	"testing"
)

func TestLowered(t *testing.T) {
	for _, c := range []struct {
		have ISA
		text string
		want ISA
	}{
		{AVX512, "", AVX512}, {AVX512, "avx512", AVX512}, {AVX512, "avx2", AVX2}, {AVX512, "none", None},
		{AVX2, "avx512", AVX2}, {AVX2, "none", None}, {None, "avx2", None}, {None, "", None},
		{NEON, "", None}, {NEON, "neon", NEON}, {NEON, "none", None}, {NEON, "avx512", None}, {AVX512, "neon", None}, {None, "neon", None},
	} {
		if got, err := lowered(c.have, c.text); got != c.want || err != nil {
			t.Errorf("%v and %q: %v, %v", c.have, c.text, got, err)
		}
	}
	got, err := lowered(AVX2, "sse")
	if got != AVX2 || err == nil || !strings.Contains(err.Error(), LevelVariable) || !strings.Contains(err.Error(), `"sse"`) {
		t.Errorf("an unknown level: %v, %v", got, err)
	}
}

func TestLevel(t *testing.T) {
	if os.Getenv(LevelVariable) == "" && LevelError() != nil {
		t.Error(LevelError())
	}
	t.Logf("supported: %v, level: %v", Supported(), Level())
	if !Supported() && Level() != None {
		t.Errorf("level %v", Level())
	}
}
