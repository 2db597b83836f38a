package dist

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestFailedText: the text of a rank that failed says where, in a call or between calls.
func TestFailedText(t *testing.T) {
	for call, want := range map[string]string{
		place{}.String(): "failed before the first call: full",
		place{call: 3, name: "barrier", waiting: true}.String():            "failed in call 3, barrier: full",
		place{call: 3, name: "save", waiting: true, onFile: true}.String(): "failed in call 3, save, reading or writing the file: full",
		place{call: 3, name: "barrier"}.String():                           "failed after call 3, barrier: full",
	} {
		e := &RankError{Rank: 1, Host: "node", State: Failed, Call: call, Err: errors.New("full")}
		if got := e.Error(); got != "dist: rank 1 (node) "+want {
			t.Errorf("%q has the text %q", call, got)
		}
	}
}

// TestFirstPlace: a rank without a call is before the first one since it opened the World.
func TestFirstPlace(t *testing.T) {
	w, err := Open(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if p := w.where(); p.since.IsZero() || !strings.Contains(p.at(), "before the first call, for ") {
		t.Errorf("the rank is %s", p.at())
	}
}
