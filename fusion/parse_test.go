package fusion

import "testing"

// TestParsePlan reads back what random plans print.
func TestParsePlan(t *testing.T) {
	for seed := range uint64(300) {
		seg := segmentOf(randomProgram(seed))
		for _, m := range []Mode{Best, Unfused} {
			p, err := Explore(seg, testCaps(), Options{Mode: m})
			if err != nil {
				t.Fatal(err)
			}
			q, err := ParsePlan(p.String())
			if err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
			if q.String() != p.String() {
				t.Fatalf("got\n%s\nwant\n%s", q, p)
			}
			if err := q.Verify(seg); err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
		}
	}
}

// FuzzParsePlan: whatever parses prints to something that parses to the same.
func FuzzParsePlan(f *testing.F) {
	for seed := range uint64(5) {
		p, err := Explore(segmentOf(randomProgram(seed)), testCaps(), Options{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.String())
	}
	seg := segmentOf(randomProgram(1))
	f.Fuzz(func(t *testing.T, src string) {
		p, err := ParsePlan(src)
		if err != nil {
			return
		}
		text := p.String()
		q, err := ParsePlan(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if q.String() != text {
			t.Fatalf("got\n%s\nwant\n%s", q, text)
		}
		if p.Verify(seg) == nil {
			if _, err := p.Layout(seg, nil); err == nil {
				p.Check(seg)
			}
		}
	})
}
