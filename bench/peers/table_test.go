package main

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/hostinfo"
)

var update = flag.Bool("update", false, "write the golden file anew")

// fixed is a report with one of everything.
func fixed() *Report {
	times := func(factor float64) []float64 {
		s := []float64{10, 11, 10.5, 10.2, 12, 10.1, 10.9}
		for i := range s {
			s[i] *= factor * 1e-3
			if factor != 1 { // noise of its own
				s[i] *= 1 + 0.01*float64(i%3)
			}
		}
		return s
	}
	timed := func(name string, factor float64) *Entry {
		return &Entry{Contestant: name, Status: ok, Error: 1e-7, Seconds: times(factor)}
	}
	return &Report{
		Machine: hostinfo.Machine{CPU: "A CPU", Cores: 2, OS: "linux/amd64", Go: "go1.26", Millrace: "v0.1.0", Commit: "0123456789ab", Date: "2026-11-26"},
		Threads: 2, Rounds: 7, WarmUps: 3,
		Contestants: []*Presence{
			{Name: "millrace", Ours: true, Versions: map[string]string{"go": "go1.26", "millrace": ""}},
			{Name: "millrace, no cgo", Ours: true},
			{Name: "fast", Versions: map[string]string{"fast": "2.0"}},
			{Name: "fast, kept", Kept: true, Versions: map[string]string{"fast": "2.0"}},
			{Name: "even"},
			{Name: "away", Missing: "No module named 'away'"},
		},
		Workloads: []*Result{
			{Name: "first", About: "what is first", Bound: "memory", Tolerance: 1e-5, Entries: []*Entry{
				timed("millrace", 1), timed("millrace, no cgo", 0.9), timed("fast", 0.5), timed("fast, kept", 0.25), timed("even", 0.985),
			}},
			{Name: "second", About: "what is second", Bound: "arithmetic", Tolerance: 2e-5, Entries: []*Entry{
				timed("millrace", 1000), timed("millrace, no cgo", 0.001), timed("fast", 1500),
				{Contestant: "fast, kept", Status: disagrees, Why: "off by 0.1, allowed 2e-05"},
				{Contestant: "even", Status: unsupported, Why: "no such thing"},
			}},
			{Name: "third", About: "what is third", Bound: "nothing", Tolerance: 1, Entries: []*Entry{
				{Contestant: "millrace", Status: failed, Why: "exit status 2; it wrote: a|b\nc"}, timed("millrace, no cgo", 2), timed("fast", 1),
			}},
			{Name: "fourth"}, {Name: "fifth"}, {Name: "sixth"},
		},
	}
}

func TestTable(t *testing.T) {
	const file = "testdata/report.md"
	got := fixed().markdown()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not what %s says (-update writes it):\n%s", file, got)
	}
}

// TestFewRounds: without an interval of 95 % nobody is ahead.
func TestFewRounds(t *testing.T) {
	r := fixed()
	for _, w := range r.Workloads {
		for _, e := range w.Entries {
			e.Seconds = e.Seconds[:min(5, len(e.Seconds))]
		}
	}
	if text := r.markdown(); strings.Contains(text, "| **") || !strings.Contains(text, "by more than the interval:\n\n- none.\n") {
		t.Errorf("somebody is ahead in\n%s", text)
	}
}

func TestJSON(t *testing.T) {
	b, err := fixed().json()
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, fixed()) {
		t.Errorf("another report came back from\n%s", b)
	}
}

func TestFolded(t *testing.T) {
	word := strings.Repeat("é", 60)
	got := folded("- " + word + " " + word + " " + word + "\n| " + word + word + word + "\n" + word + word + word)
	want := "- " + word + " " + word + "\n  " + word + "\n| " + word + word + word + "\n" + word + word + word
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestPlaced(t *testing.T) {
	page := "# Peers\n\n" + begin + "\nold\n" + end + "\nafter\n"
	got, err := placed(page, "new\n")
	if want := "# Peers\n\n" + begin + "\n\nnew\n\n" + end + "\nafter\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	first, err := placed("", "new\n")
	if want := begin + "\n\nnew\n\n" + end + "\n"; first != want || err != nil {
		t.Errorf("%q, %v", first, err)
	}
	if again, err := placed(first, "new\n"); again != first || err != nil {
		t.Errorf("written twice: %q, %v", again, err)
	}
	for _, page := range []string{"no marks", begin, end + begin} {
		if _, err := placed(page, "new"); err == nil {
			t.Errorf("%q takes a text", page)
		}
	}
}
