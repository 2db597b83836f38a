package fusion

import (
	"reflect"
	"strings"
	"testing"
)

const recordsText = `record best
wants 4 7
segment
| %0 = input : float32(4)
|
| output %1
plan
| step 0 domain t1 nodes 0
record unfused
segment
plan
`

func TestParseRecords(t *testing.T) {
	rs, err := ParseRecords(recordsText)
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Best, []int{4, 7}, "%0 = input : float32(4)\n\noutput %1\n", "step 0 domain t1 nodes 0\n"},
		{Mode: Unfused},
	}
	if !reflect.DeepEqual(rs, want) {
		t.Errorf("got %+v", rs)
	}
	if got := FormatRecords(rs); got != recordsText {
		t.Errorf("got\n%s", got)
	}
	if rs, err := ParseRecords(""); err != nil || len(rs) > 0 {
		t.Errorf("nothing gives %v, %v", rs, err)
	}
}

func TestParseRecordsErrors(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"record best\n", ""},
		{"record best", "record fast"},
		{"wants 4", "wants -4"},
		{"wants 4", "wants 40000"},
		{"wants 4", "wants" + strings.Repeat(" 1", maxWants+1)},
		{"wants 4 7", "wants 4\nwants 7"},
		{"wants 4 7", "want 4 7"},
		{"segment\n|", "segment 1\n|"},
		{"plan\n|", "|"},
		{"plan\n", "plans\n"},
		{"wants", "| wants"},
		{"record unfused", strings.Repeat("record best\nsegment\nplan\n", MaxRecords) + "record unfused"},
	} {
		text := strings.Replace(recordsText, c.from, c.to, 1)
		if text == recordsText {
			t.Fatalf("%q is not in the text", c.from)
		}
		if _, err := ParseRecords(text); err == nil {
			t.Errorf("%q for %q was accepted", c.to, c.from)
		} else if !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q for %q: %v names no line", c.to, c.from, err)
		}
	}
}

// FuzzParseRecords: records that parse print to a text that parses to the same records. No plan in
// them causes a panic. A plan that Replay accepts for a segment computes that segment.
func FuzzParseRecords(f *testing.F) {
	f.Add(recordsText)
	prog := randomProgram(1)
	seg := segmentOf(prog)
	p, err := Explore(seg, testCaps(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(FormatRecords([]Record{{Wants: []int{1, 2}, Segment: "%0 = input\n", Plan: p.String()}}))
	f.Fuzz(func(t *testing.T, src string) {
		rs, err := ParseRecords(src)
		if err != nil {
			return
		}
		again, err := ParseRecords(FormatRecords(rs))
		if err != nil || FormatRecords(again) != FormatRecords(rs) {
			t.Fatalf("%v\n%s", err, FormatRecords(rs))
		}
		for i := range rs {
			p, err := ParsePlan(rs[i].Plan)
			if err != nil || p.Verify(seg) != nil {
				continue
			}
			if p, err = p.Replay(seg, testCaps(), Options{Mode: rs[i].Mode}); err == nil && p.Check(seg) {
				checkPlan(t, prog, seg, p)
			}
		}
	})
}
