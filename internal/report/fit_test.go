package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// large is a report of launches of 400 kernels; their sources have up to 400 times lines lines.
func large(launches, lines int) *Report {
	r := sample(launches)
	d := &r.Devices[0]
	for i := len(d.Kernels); i < 400; i++ {
		d.Kernels = append(d.Kernels, Kernel{Key: fmt.Sprint(i), Name: "k", Runs: 1, Sources: []Source{{Tier: "tier 1", Text: strings.Repeat("vaddps <zmm1>\n", i*lines)}}})
	}
	return r
}

func (d *Device) texts() (list []string) {
	for _, k := range d.Kernels {
		for _, s := range k.Sources {
			list = append(list, s.Text)
		}
	}
	return list
}

func TestFit(t *testing.T) {
	before := large(10000, 6)
	page := mustWrite(t, before)
	if len(page) > Limit {
		t.Errorf("%d bytes, over %d", len(page), Limit)
	}
	if len(page) < Limit*8/10 {
		t.Errorf("%d bytes: more was left out than had to be", len(page))
	}
	was, is := &before.Devices[0], &read(t, page).Devices[0]
	if is.SpansLeft != was.SpansLeft || len(is.Spans) != len(was.Spans) || is.KernelsLeft != 0 || is.PlansLeft != 0 {
		t.Error("more than sources was left out")
	}
	left, shortest, longest := int64(0), 1<<30, 0
	for i, text := range is.texts() {
		if text == "" {
			left++
			shortest = min(shortest, len(was.texts()[i]))
		} else {
			longest = max(longest, len(text))
		}
	}
	if left == 0 || left != is.SourcesLeft || shortest < longest {
		t.Errorf("%d sources are left out, %d counted; the shortest has %d bytes, the longest that is there %d", left, is.SourcesLeft, shortest, longest)
	}
}

// TestFitStages shrinks a report to less than the size of the page itself: the parts left out and
// the remaining ones add up to all, and one kind is left out after the other.
func TestFitStages(t *testing.T) {
	before := large(2000, 1)
	was := &before.Devices[0]
	was.SpansLeft = 5
	empty, err := build(&Report{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for limit := 2_000_000; limit > 0; limit = limit / 2 {
		page, err := build(before, limit+len(empty))
		if err != nil {
			t.Fatal(err)
		}
		is := &read(t, string(page)).Devices[0]
		if limit > 12000 && len(page) > limit+len(empty) {
			t.Errorf("limit %d: %d bytes", limit, len(page)-len(empty))
		}
		stages := []struct {
			name       string
			left, kept int64
			all        int
		}{
			{"sources", is.SourcesLeft, int64(len(is.texts())), len(was.texts())},
			{"spans", is.SpansLeft - 5, int64(len(is.Spans)), len(was.Spans)},
			{"plans", is.PlansLeft, int64(len(is.Plans)), len(was.Plans)},
			{"kernels", is.KernelsLeft, int64(len(is.Kernels)), len(was.Kernels)},
		}
		for i, s := range stages {
			if i > 0 && s.left+s.kept != int64(s.all) {
				t.Errorf("limit %d: %s: %d are left out and %d there, of %d", limit, s.name, s.left, s.kept, s.all)
			}
			if s.left > 0 && !slices.Contains(seen, s.name) {
				seen = append(seen, s.name)
			}
		}
		if n := len(is.Spans); n > 0 && is.Spans[n-1].Start != clean(before).Devices[0].Spans[len(was.Spans)-1].Start {
			t.Errorf("limit %d: the newest span is gone", limit)
		}
		for _, s := range is.Spans {
			if s.Kind == Launch && s.Ref >= len(is.Kernels) {
				t.Fatalf("limit %d: a launch of kernel %d, of %d", limit, s.Ref, len(is.Kernels))
			}
		}
		for _, p := range is.Plans {
			for _, k := range p.Kernels {
				if k >= len(is.Kernels) {
					t.Fatalf("limit %d: a plan has kernel %d, of %d", limit, k, len(is.Kernels))
				}
			}
		}
	}
	if want := []string{"sources", "spans", "plans", "kernels"}; !slices.Equal(seen, want) {
		t.Errorf("left out, in order: %v", seen)
	}
}
