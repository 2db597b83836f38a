package stream

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
)

// Entries made by this program are never outdated. An entry is outdated if an op of its plan had
// another meaning when it was made, or if its key or segment is invalid.
func TestOutdated(t *testing.T) {
	data := bundleOf(t, func(e *env) {
		mixed(e)
		for seed := range uint64(20) {
			runSeeded(t, e.d, progen.New(seed, progen.Config{Ops: 10, Groups: groups[seed%2]}), seed)
		}
	})
	made := 0
	edited(t, data, func(e *plancache.Entry) {
		if e.Kind != lookup.KindPlan {
			return
		}
		made++
		_, form := plancache.SplitKey(e.Key)
		records, err := fusion.ParseRecords(string(e.Value))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if why := planstore.Outdated(form, r.Segment); why != "" {
				t.Errorf("%s\n%s", why, r.Segment)
			}
			for _, c := range []struct{ form, text, says string }{
				{form[:planstore.EndBytes], r.Segment, "means something else"},
				{form[:planstore.EndBytes-1], r.Segment, "its key"},
				{form[:len(form)-1], r.Segment, "its key"},
				{form, strings.Replace(r.Segment, " = ", " = no", 1), "its segment"},
			} {
				if why := planstore.Outdated(c.form, c.text); !strings.Contains(why, c.says) {
					t.Errorf("%q, want %q", why, c.says)
				}
			}
		}
	})
	if made < 20 {
		t.Errorf("%d plans", made)
	}
}
