package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A program is timed on two backends: a line for each kind of step.
func TestBench(t *testing.T) {
	var text bytes.Buffer
	c := config{backends: []string{"go", "millrace:cache=off"}, run: regexp.MustCompile("^neighbours$"), rounds: 2, batch: time.Microsecond}
	if err := bench(c, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"go over millrace |\n|---|", "| neighbours | the first | ", "| neighbours | queries 64 | ", "| neighbours | another queries each time | "} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("%s\nhas no %q", &text, want)
		}
	}
}

// Another process is asked, and answers, line by line; what is wrong is its answer.
func TestServe(t *testing.T) {
	var text bytes.Buffer
	asked := "start\tno\nstart\tneighbours\nsteps\t5\t2\nbusy\nstop\nrun\nsteps\tx\n"
	if err := serve("millrace:cpu", strings.NewReader(asked), &text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	want := []string{`error: no program "no"`, `0`, `\d{4,}`, `\d+`, `0`, `error: no request \["run"\]`, `error: .*`, ``}
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i, w := range want {
		if !regexp.MustCompile("^" + w + "$").MatchString(lines[i]) {
			t.Errorf("answer %d is %q, want %q", i, lines[i], w)
		}
	}
}
