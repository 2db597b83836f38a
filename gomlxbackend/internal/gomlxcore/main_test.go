package main

import (
	"slices"
	"testing"
)

// Which differences count.
func TestWorse(t *testing.T) {
	of := func(pairs ...string) map[string]result {
		m := map[string]result{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = result{outcome: pairs[i+1]}
		}
		return m
	}
	first := of("TestA", "PASS", "TestB", "FAIL", "TestC", "PASS", "TestC/x", "PASS", "TestD", "PASS", "TestE", "PASS", "TestE/x", "PASS",
		"TestF", "PASS", "TestG", "PASS", "TestH", "PASS", "TestH/x", "PASS")
	second := of("TestA", "PASS", "TestB", "FAIL", "TestC", "SKIP", "TestD", "FAIL", "TestE", "FAIL", "TestE/x", "FAIL",
		"TestF", "FAIL", "TestF/other", "FAIL", "TestG", "no end", "TestH", "FAIL")
	want := []string{"TestD", "TestE/x", "TestG", "TestH", "TestH/x"}
	if got := worse(first, second); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var c counts
	c.add(second)
	if want := (counts{1, 1, 8}); c != want {
		t.Errorf("%v, want %v", c, want)
	}
}

func TestSame(t *testing.T) {
	if got := same("TestX/millrace/millrace_y", "millrace"); got != "TestX/BACKEND/millrace_y" {
		t.Error(got)
	}
}
