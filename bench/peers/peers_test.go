package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/statusline"
)

// timed is a report on sums by contestants that behave so.
func timed(t *testing.T, behaviours ...string) *Report {
	t.Helper()
	o := &options{bench: bench{
		threads: 1, rounds: 7, warmUps: 2, limit: 3 * time.Second, shape: shape{2, 3, 4}, work: t.TempDir(), status: statusline.New(io.Discard, 0),
	}, workloads: "sum"}
	r, err := o.report(fakes(t, behaviours...), o.write)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(o.work)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return r
}

// TestBadContestants: one that does anything but what it was asked for is out, the
// report and the exit status say so, and the others go on.
func TestBadContestants(t *testing.T) {
	cases := map[string]struct {
		status string
		why    []string
	}{
		"wrong":        {disagrees, []string{"off by 0.00", "allowed 1e-06"}},
		"nan":          {disagrees, []string{"off by NaN"}},
		"long":         {failed, []string{"2 elements", "instead of 1"}},
		"dies":         {failed, []string{"exit status 4", "an illegal instruction"}},
		"dies at once": {failed, []string{"exit status 3", "no room"}},
		"hangs":        {failed, []string{"no answer for 3s", "waiting for nothing"}},
		"chatters":     {failed, []string{`answered "progress: 50 %"`}},
		"complains":    {failed, []string{"out of memory"}},
		"has no clock": {failed, []string{"gave no time"}},
		"unsupported":  {unsupported, []string{"it has no sums"}},
	}
	names := []string{"ours", "slow"}
	for name := range cases {
		names = append(names, name)
	}
	slices.Sort(names)
	r := timed(t, names...)
	w, bad := r.Workloads[0], 0
	for name, c := range cases {
		e := w.entry(name)
		if e.Status != c.status || len(e.Seconds) > 0 {
			t.Errorf("%s: %+v, want %s and no times", name, e, c.status)
		}
		for _, part := range c.why {
			if !strings.Contains(e.Why, part) {
				t.Errorf("%s: %q does not say %q", name, e.Why, part)
			}
		}
		if c.status == unsupported {
			continue
		}
		bad++
		if !slices.ContainsFunc(r.failures(), func(s string) bool { return strings.HasPrefix(s, "sum, "+name+" ") }) {
			t.Errorf("the exit status does not know of %s", name)
		}
		if row := "| " + name + " | ✗ |"; !strings.Contains(r.markdown(), row) {
			t.Errorf("the table has no %q", row)
		}
	}
	if got := len(r.failures()); got != bad {
		t.Errorf("%d failures, want %d: %q", got, bad, r.failures())
	}
	for _, name := range []string{"ours", "slow"} {
		if e := w.entry(name); e.Status != ok || len(e.Seconds) != 7 {
			t.Errorf("%s did not go on: %+v", name, e)
		}
	}
	if est, ahead := ratio(w.entry("slow"), r.base(w)); est.Mid < 2.9 || est.Mid > 3.1 || ahead {
		t.Errorf("slow is %v times ours, ahead %v; want 3", est, ahead)
	}
}

// TestMissing: what is not installed is listed with the reason, and is no failure.
func TestMissing(t *testing.T) {
	r := timed(t, "ours", "missing")
	if f := r.failures(); len(f) > 0 {
		t.Errorf("failures: %q", f)
	}
	if v := r.Contestants[0].Versions["fake"]; v != "1.2.3" {
		t.Errorf("version %q", v)
	}
	c := contestant{command: []string{filepath.Join(t.TempDir(), "peer")}}
	if _, err := c.versions(); err == nil || err.Error() != "there is no peer" {
		t.Errorf("a program that is not there: %v", err)
	}
	text := r.markdown()
	if want := "- missing: not installed (there is no module called fake)."; !strings.Contains(text, want) {
		t.Errorf("no line %q in\n%s", want, text)
	}
	if strings.Contains(text, "| missing |") {
		t.Error("what is missing has a row")
	}
}

// TestNothingOfOurs: without a time of ours there is nothing to compare with.
func TestNothingOfOurs(t *testing.T) {
	r := timed(t, "slow")
	if f := r.failures(); len(f) != 1 || !strings.Contains(f[0], "nothing of ours") {
		t.Errorf("failures: %q", f)
	}
}

// TestWritten: the page keeps the text around the marks, and the samples are in a file beside it.
func TestWritten(t *testing.T) {
	page := filepath.Join(t.TempDir(), "peers.md")
	if err := os.WriteFile(page, []byte("# Peers\n"+begin+end+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	o := &options{bench: bench{rounds: 2, warmUps: 1, limit: time.Minute, shape: shape{1, 1, 8}, work: t.TempDir(), status: statusline.New(io.Discard, 0)}, workloads: "sum", out: page}
	if _, err := o.report(fakes(t, "ours"), o.write); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "# Peers\n") || !strings.Contains(string(text), "| ours | 2 |") {
		t.Errorf("%v:\n%s", err, text)
	}
	var back Report
	samples, err := os.ReadFile(strings.TrimSuffix(page, ".md") + ".json")
	if err == nil {
		err = json.Unmarshal(samples, &back)
	}
	if err != nil || len(back.Workloads) != 1 || !slices.Equal(back.Workloads[0].Entries[0].Seconds, []float64{0.002, 0.002}) {
		t.Errorf("%v:\n%s", err, samples)
	}
	var table strings.Builder
	if got := run(t.Context(), []string{"-from", strings.TrimSuffix(page, ".md") + ".json"}, &table, io.Discard); got != 0 || table.String() != back.markdown() {
		t.Errorf("exit status %d, and from the samples came\n%s", got, &table)
	}
	if err := os.WriteFile(page, []byte("no marks"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := o.report(fakes(t, "ours"), o.write); err == nil || !strings.Contains(err.Error(), "has no lines") {
		t.Errorf("%v", err)
	}
}

func TestInterrupted(t *testing.T) {
	quit := make(chan struct{})
	close(quit)
	o := &options{bench: bench{rounds: 1, warmUps: 1, limit: time.Minute, shape: shape{1, 1, 8}, work: t.TempDir(), status: statusline.New(io.Discard, 0), quit: quit}, workloads: "sum"}
	if _, err := o.report(fakes(t, "ours", "hangs"), o.write); err == nil || err.Error() != "interrupted" {
		t.Errorf("%v", err)
	}
}

// TestOrder: every contestant has every turn, and is before every other one as
// often as after it.
func TestOrder(t *testing.T) {
	const n = 5
	first, before := map[int]int{}, 0
	for round := range 4 * n {
		turn := order(round, n)
		first[turn[0]]++
		if sorted := slices.Sorted(slices.Values(turn)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("round %d: %v", round, turn)
		}
		if slices.Index(turn, 1) < slices.Index(turn, 3) {
			before++
		}
	}
	if len(first) != n || before != 2*n {
		t.Errorf("first %v times, 1 before 3 in %d of %d rounds", first, before, 4*n)
	}
}

// TestBefore: with another checkout, each build of ours has one from there behind it. A folder that
// is no checkout makes these contestants missing, and no others.
func TestBefore(t *testing.T) {
	list := places{work: t.TempDir(), source: ".", before: t.TempDir()}.list(1)
	for i, name := range []string{"millrace", "millrace, before", "millrace, no cgo", "millrace, no cgo, before"} {
		c := list[i]
		if before := i%2 == 1; c.name != name || c.ours == before || (c.buildIn == ".") == before {
			t.Errorf("contestant %d is %s, ours %v, built in %s", i, c.name, c.ours, c.buildIn)
		}
		if c.command[0] != c.build[3] {
			t.Errorf("%s runs %s, but its build writes %s", name, c.command[0], c.build[3])
		}
	}
	if _, err := list[1].versions(); err == nil {
		t.Error("an empty folder was taken for a checkout")
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-shape", "1,2"}, {"-shape", "a,2,3"}, {"-shape", "100000,100000,10"}, {"-rounds", "0"}, {"-threads", "0"}, {"-warmup", "0"}, {"more"}, {"-no"},
	} {
		if got := run(t.Context(), args, io.Discard, io.Discard); got != 2 {
			t.Errorf("%v: exit status %d", args, got)
		}
	}
	for _, args := range [][]string{{"-only", "nobody"}, {"-workloads", "sum,nothing"}} {
		var errs strings.Builder
		if got := run(t.Context(), args, io.Discard, &errs); got != 1 || !strings.Contains(errs.String(), "there is no") {
			t.Errorf("%v: exit status %d, %s", args, got, &errs)
		}
	}
}
