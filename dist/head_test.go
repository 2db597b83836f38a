package dist

import (
	"strings"
	"testing"
)

// TestDifference: the text names the first line that differs, both forms, and who has which.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{"step\na [2]\nb [3]", "step\na [2]\nb [4]", "step\na [2]\nb [3]"}, "call 7, step: ranks 0, 2 have b [3]; rank 1 has b [4]"},
		{[]string{"step\na [2]", "step\na [2]\nb [4]"}, "call 7, step: rank 0 has nothing more; rank 1 has b [4]"},
		{[]string{"step", "close"}, "call 7: rank 0 calls step; rank 1 calls close"},
	} {
		if got := difference(7, make([]head, len(c.texts)), c.texts); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got, want := difference(7, []head{{number: 7}, {number: 8}}, []string{"step", "step"}), "rank 0 is at call 7; rank 1 is at call 8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHeadBytes(t *testing.T) {
	h := head{number: 1 << 40, plan: 3, text: 4, failed: true, stopping: true}
	if got := headOf(h.bytes()); got != h || len(h.bytes()) != headSize {
		t.Errorf("%+v, want %+v", got, h)
	}
}

// TestNote: a note never exceeds its limit, and its fields have no separator of their own.
func TestNote(t *testing.T) {
	if n := note(noteRank, "a\x00b", strings.Repeat("x", 2000)); len(n) != MaxNote || strings.Count(string(n), "\x00") != 1 {
		t.Errorf("%d bytes, %q", len(n), n[:10])
	}
}
