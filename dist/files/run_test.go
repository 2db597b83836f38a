package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
)

// inputs writes n files of some bytes each, and returns their paths.
func inputs(t *testing.T, n int) (names []string) {
	dir := t.TempDir()
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("in%03d", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %d\n", i), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// reverse writes the bytes of a file from the last to the first.
func reverse(_ context.Context, in string, w io.Writer) error {
	b, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	slices.Reverse(b)
	for len(b) > 0 { // in several writes
		n := min(3, len(b))
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// complete checks that out has an output for each input, and nothing else.
func complete(t *testing.T, names []string, out string) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != len(names) {
		t.Errorf("%d files in the folder for %d inputs, %v", len(entries), len(names), err)
	}
	for _, name := range names {
		var want bytes.Buffer
		if err := reverse(nil, name, &want); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, filepath.Base(name)))
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestRun: parts that run at the same time do all files, and a second Run does nothing.
func TestRun(t *testing.T) {
	for _, c := range []struct{ files, parts, workers int }{{1, 1, 0}, {10, 3, 1}, {2, 5, 1}, {40, 4, 3}} {
		names, out := inputs(t, c.files), filepath.Join(t.TempDir(), "a", "b")
		var done atomic.Int64
		var wg sync.WaitGroup
		for part := range c.parts {
			wg.Go(func() {
				sum, err := Run(t.Context(), Job{In: names, Out: out, Part: part, Parts: c.parts, Workers: c.workers}, reverse)
				if err != nil || sum.Done+sum.Before != c.files || len(sum.Failed) != 0 {
					t.Errorf("%+v: %+v, %v", c, sum, err)
				}
				done.Add(int64(sum.Done))
			})
		}
		wg.Wait()
		if done.Load() < int64(c.files) {
			t.Errorf("%+v: %d files done", c, done.Load())
		}
		complete(t, names, out)
		sum, err := Run(nil, Job{In: names, Out: out}, func(context.Context, string, io.Writer) error { return errors.New("called") })
		if err != nil || sum.Before != c.files || sum.Done != 0 {
			t.Errorf("again: %+v, %v", sum, err)
		}
	}
}

// TestOrder: a process does its own part first, and the others' from their ends.
func TestOrder(t *testing.T) {
	names := inputs(t, 7)
	var got []int
	sum, err := Run(nil, Job{In: names, Out: t.TempDir(), Part: 1, Parts: 3}, func(_ context.Context, in string, _ io.Writer) error {
		got = append(got, slices.Index(names, in))
		return nil
	})
	if want := []int{2, 3, 6, 5, 4, 1, 0}; err != nil || sum.Done != 7 || !slices.Equal(got, want) {
		t.Errorf("%v, want %v; %+v, %v", got, want, sum, err)
	}
}

// TestFails: files that fail, each in its way, are named, and the others are done.
func TestFails(t *testing.T) {
	names, out := inputs(t, 6), t.TempDir()
	bad, tries := errors.New("bad file"), 0
	f := func(ctx context.Context, in string, w io.Writer) error {
		switch slices.Index(names, in) {
		case 1:
			if err := reverse(ctx, in, w); err != nil {
				return err
			}
			tries++
			return bad
		case 2:
			panic("no")
		case 3:
			runtime.Goexit()
		case 4:
			if tries++; tries < 5 { // after the three tries of 1
				return bad
			}
		}
		return reverse(ctx, in, w)
	}
	sum, err := Run(nil, Job{In: names, Out: out, Retries: 2}, f)
	if sum.Done != 3 || len(sum.Failed) != 3 || !errors.Is(err, bad) || !errors.Is(err, ErrPanic) || !strings.Contains(err.Error(), names[1]+" failed after 3 tries: bad file") {
		t.Errorf("%+v, %v", sum, err)
	}
	for i, x := range sum.Failed {
		if x.In != names[1+i] || x.Tries != 3 {
			t.Errorf("%+v", x)
		}
	}
	if sum, err := Run(nil, Job{In: names, Out: out}, reverse); err != nil || sum.Done != 3 || sum.Before != 3 {
		t.Errorf("again: %+v, %v", sum, err)
	}
	complete(t, names, out)
}

// TestFull: where outputs cannot be written, Run ends with that error and leaves nothing.
func TestFull(t *testing.T) {
	names, out := inputs(t, 5), t.TempDir()
	fault.SetAfter(fault.File, 2, -1)
	sum, err := Run(nil, Job{In: names, Out: out, Retries: 3}, reverse)
	fault.Set(fault.File, 0)
	var injected *fault.Error
	if sum.Done != 2 || len(sum.Failed) != 0 || !errors.As(err, &injected) {
		t.Errorf("%+v, %v", sum, err)
	}
	complete(t, names[:2], out)
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	w := &writer{w: full}
	if _, err := w.Write([]byte("x")); err == nil || w.err == nil {
		t.Errorf("a full disk: %v, %v", err, w.err)
	}
}

// TestEnds: when the context ends, no other file is begun, and what was done stays.
func TestEnds(t *testing.T) {
	names, out := inputs(t, 5), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	sum, err := Run(ctx, Job{In: names, Out: out}, func(ctx context.Context, in string, w io.Writer) error {
		if n++; n == 3 {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}
		return reverse(ctx, in, w)
	})
	if sum.Done != 2 || len(sum.Failed) != 0 || !errors.Is(err, context.Canceled) || n != 3 {
		t.Errorf("%+v, %v", sum, err)
	}
	complete(t, names[:2], out)
}

// TestCrashed: a file that several processes began and did not end is not tried again, and one that
// was begun fewer times comes last.
func TestCrashed(t *testing.T) {
	names, out := inputs(t, 4), t.TempDir()
	for _, name := range []string{".in001.0000000a.tmp", ".in001.0000000b.tmp", ".in001.0000000e.tmp", ".in000.0000000c.tmp", ".other.0000000d.tmp", ".in002.tmp"} {
		if err := os.WriteFile(filepath.Join(out, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	last := ""
	sum, err := Run(nil, Job{In: names, Out: out, Retries: 1}, func(ctx context.Context, in string, w io.Writer) error {
		last = in
		return reverse(ctx, in, w)
	})
	if !errors.Is(err, ErrCrashed) || sum.Done != 3 || len(sum.Failed) != 1 || sum.Failed[0].In != names[1] || last != names[0] {
		t.Errorf("%+v, %v, last %s", sum, err, last)
	}
	left, err := filepath.Glob(filepath.Join(out, ".*"))
	if want := []string{".in001.0000000a.tmp", ".in001.0000000b.tmp", ".in001.0000000e.tmp", ".in002.tmp", ".other.0000000d.tmp"}; err != nil || len(left) != len(want) {
		t.Errorf("%q are left, want %q", left, want)
	}
}

// TestRefuses: jobs that contradict themselves are errors that say why.
func TestRefuses(t *testing.T) {
	names, out := inputs(t, 3), t.TempDir()
	file := filepath.Join(out, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	same := func(string) string { return "same" }
	for _, c := range []struct {
		job  Job
		want string
	}{
		{Job{Out: out}, "no files"},
		{Job{In: names}, "no folder"},
		{Job{In: names, Out: out, Part: 1}, "part 1 of 0"},
		{Job{In: names, Out: out, Part: -1, Parts: 2}, "part -1 of 2"},
		{Job{In: names, Out: out, Parts: -2}, "part 0 of -2"},
		{Job{In: names, Out: out, Retries: -1}, "-1 retries"},
		{Job{In: names, Out: out, Workers: -1}, "-1 workers"},
		{Job{In: names, Out: out, Name: same}, "have the same output, same"},
		{Job{In: names, Out: out, Name: func(string) string { return "../x" }}, "not a path below"},
		{Job{In: names, Out: out, Name: func(string) string { return "" }}, "not a path below"},
		{Job{In: names, Out: filepath.Dir(names[0])}, "would be overwritten"},
		{Job{In: names, Out: file}, "not a directory"},
	} {
		if _, err := Run(nil, c.job, reverse); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.job, err, c.want)
		}
	}
}
