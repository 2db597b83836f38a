package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
)

// counting gives record i the elements i and -i and the label i, and counts calls.
type counting struct {
	n      int
	fail   map[int]error
	read   func(i int) // called by every Read
	reads  atomic.Int64
	inside atomic.Int64
}

func (c *counting) Len() int { return c.n }

func (c *counting) Fields() []data.Field {
	return []data.Field{{Name: "x", DType: millrace.Float32, Shape: []int{2}}, {Name: "y", DType: millrace.Int64}}
}

func (c *counting) Read(i int, dst []any) error {
	c.reads.Add(1)
	c.inside.Add(1)
	defer c.inside.Add(-1)
	if c.read != nil {
		c.read(i)
	}
	if err := c.fail[i]; err != nil {
		return err
	}
	x, y := dst[0].([]float32), dst[1].([]int64)
	if len(x) != 2 || len(y) != 1 {
		return fmt.Errorf("room for %d and %d elements", len(x), len(y))
	}
	x[0], x[1], y[0] = float32(i), -float32(i), int64(i)
	return nil
}

func loader(t testing.TB, src data.Source, opt data.Options) *data.Loader {
	t.Helper()
	l, err := data.NewLoader(src, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// check compares a batch's elements with its record indices.
func check(t testing.TB, b *data.Batch) {
	t.Helper()
	y, err := millrace.Values[int64](b.Y)
	if err != nil {
		t.Fatal(err)
	}
	x, err := millrace.Values[float32](b.X)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.X.Shape(), []int{b.Len(), 2}) || !slices.Equal(b.Y.Shape(), []int{b.Len()}) {
		t.Fatalf("shapes %v and %v of %d records", b.X.Shape(), b.Y.Shape(), b.Len())
	}
	for k, r := range b.Records {
		if y[k] != int64(r) || x[2*k] != float32(r) || x[2*k+1] != -float32(r) {
			t.Fatalf("record %d of the batch is %v, %v, want record %d", k, x[2*k:2*k+2], y[k], r)
		}
	}
}

// epoch returns the records of each batch up to the end of an epoch.
func epoch(t testing.TB, l *data.Loader) (batches [][]int) {
	t.Helper()
	for b, err := range l.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		check(t, b)
		batches = append(batches, b.Records)
		b.Release()
	}
	return batches
}

func TestBatches(t *testing.T) {
	for _, c := range []struct {
		n, batch int
		drop     bool
		want     []int // sizes of batches
	}{
		{10, 4, false, []int{4, 4, 2}}, {10, 4, true, []int{4, 4}}, {8, 4, false, []int{4, 4}}, {8, 4, true, []int{4, 4}},
		{3, 100, false, []int{3}}, {1, 1, true, []int{1}}, {5, 1, false, []int{1, 1, 1, 1, 1}},
	} {
		for _, workers := range []int{0, 1, 3, 8} {
			l := loader(t, &counting{n: c.n}, data.Options{Batch: c.batch, DropLast: c.drop, Workers: workers, Prefetch: 1 + workers%3})
			for e := range 2 {
				var sizes []int
				at := 0
				for _, b := range epoch(t, l) {
					sizes = append(sizes, len(b))
					for _, r := range b {
						if r != at {
							t.Fatalf("%+v: record %d, want %d", c, r, at)
						}
						at++
					}
				}
				if !slices.Equal(sizes, c.want) || l.Len() != len(c.want) || l.State().Epoch != e+1 || l.State().Position != 0 {
					t.Errorf("%+v, %d workers: batches of %v, Len %d, then %+v", c, workers, sizes, l.Len(), l.State())
				}
			}
		}
	}
}

func TestShuffle(t *testing.T) {
	const n = 101
	orders := func(seed uint64, workers int) (all []string) {
		l := loader(t, &counting{n: n, read: func(i int) {
			if i%7 == 0 {
				time.Sleep(time.Duration(i%3) * 50 * time.Microsecond)
			}
		}}, data.Options{Batch: 8, Shuffle: true, Seed: seed, Workers: workers})
		for range 3 {
			got := epoch(t, l)
			flat := slices.Concat(got...)
			all = append(all, fmt.Sprint(flat))
			slices.Sort(flat)
			for i, r := range flat {
				if i != r {
					t.Fatalf("record %d is there not once", i)
				}
			}
		}
		return all
	}
	one := orders(1, 1)
	if again := orders(1, 7); !slices.Equal(one, again) {
		t.Error("the order depends on the number of workers")
	}
	if other := orders(2, 1); one[0] == other[0] || one[0] == one[1] || one[1] == one[2] {
		t.Error("two orders are the same")
	}
	// Resumed runs rely on this order.
	l := loader(t, &counting{n: 10}, data.Options{Batch: 10, Shuffle: true, Seed: 42})
	if got := fmt.Sprint(epoch(t, l), epoch(t, l)); got != "[[6 2 5 3 4 7 0 1 9 8]] [[2 3 9 6 0 8 7 4 5 1]]" {
		t.Errorf("seed 42 shuffles to %s", got)
	}
}

// TestShuffleIsUniform: all permutations of four are about equally frequent. Chi-squared with 23
// degrees of freedom is below 49.7 in 999 of 1000 cases, and the seeds are fixed.
func TestShuffleIsUniform(t *testing.T) {
	const rounds = 4800
	l := loader(t, &counting{n: 4}, data.Options{Batch: 4, Shuffle: true, Workers: 1})
	count := map[string]int{}
	for range rounds {
		count[fmt.Sprint(epoch(t, l))]++
	}
	chi := 0.0
	for _, n := range count {
		d := float64(n) - rounds/24
		chi += float64(d*d) / (rounds / 24)
	}
	if len(count) != 24 || chi > 49.7 {
		t.Errorf("%d permutations, chi-squared %.1f", len(count), chi)
	}
}

func TestResume(t *testing.T) {
	const n = 53
	opt := data.Options{Batch: 8, Shuffle: true, Seed: 7}
	for _, drop := range []bool{false, true} {
		opt.DropLast = drop
		whole := loader(t, &counting{n: n}, opt)
		var want [][]int
		var states [][]byte // after each batch
		for range 3 {
			for b, err := range whole.Batches(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, b.Records)
				text, err := json.Marshal(whole.State())
				if err != nil {
					t.Fatal(err)
				}
				states = append(states, text)
				b.Release()
			}
		}
		for k, text := range states {
			opt.Workers = 1 + k%4
			l := loader(t, &counting{n: n}, opt)
			var s data.State
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			if err := l.Restore(s); err != nil {
				t.Fatal(err)
			}
			if l.State() != s {
				t.Fatalf("%+v, restored from %+v", l.State(), s)
			}
			got := want[: k+1 : k+1]
			for l.State().Epoch < 3 {
				got = append(got, epoch(t, l)...)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("resumed behind batch %d: %v, want %v", k, got, want)
			}
		}
	}
	l := loader(t, &counting{n: n}, opt)
	good := l.State()
	for name, change := range map[string]func(*data.State){
		"seed": func(s *data.State) { s.Seed++ }, "records": func(s *data.State) { s.Records-- }, "shuffle": func(s *data.State) { s.Shuffle = false },
		"epoch": func(s *data.State) { s.Epoch = -1 }, "position": func(s *data.State) { s.Position = -1 }, "end": func(s *data.State) { s.Position = n },
	} {
		s := good
		change(&s)
		if err := l.Restore(s); err == nil {
			t.Errorf("%s: %+v was restored", name, s)
		}
	}
}

// TestBreak: a loop after a break continues there.
func TestBreak(t *testing.T) {
	l := loader(t, &counting{n: 20}, data.Options{Batch: 3, Shuffle: true, Seed: 3})
	want := epoch(t, loader(t, &counting{n: 20}, data.Options{Batch: 3, Shuffle: true, Seed: 3}))
	var got [][]int
	for l.State().Epoch == 0 {
		for b, err := range l.Batches(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			check(t, b)
			got = append(got, b.Records)
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// goroutines fails if more goroutines are left than before.
func goroutines(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if goruntime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", goruntime.NumGoroutine(), before, buf[:goruntime.Stack(buf, true)])
}

// TestEnds: however a loop ends, no Read is running then, no goroutine is left, and batches that
// the program did not get take no memory.
func TestEnds(t *testing.T) {
	dev, err := millrace.Open("cpu:threads=1")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	src := &counting{n: 1 << 20, read: func(int) { time.Sleep(time.Microsecond) }}
	l := loader(t, src, data.Options{Batch: 64, Workers: 4, Prefetch: 3, Shuffle: true, On: dev})
	epochs := func(f func(ctx context.Context, cancel func(), k int) bool) error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		k := 0
		for b, err := range l.Batches(ctx) {
			if err != nil {
				return err
			}
			check(t, b)
			b.Release()
			if !f(ctx, func() { cancel(errCause) }, k) {
				break
			}
			k++
		}
		return nil
	}
	if err := epochs(func(context.Context, func(), int) bool { return false }); err != nil { // starts the device's own goroutines
		t.Fatal(err)
	}
	before, live := goruntime.NumGoroutine(), dev.Stats().LiveBytes
	for k := range 20 {
		if err := epochs(func(_ context.Context, _ func(), at int) bool { return at < k%4 }); err != nil {
			t.Fatal(err)
		}
		if n := src.inside.Load(); n != 0 {
			t.Fatalf("%d reads under way after the loop", n)
		}
		err := epochs(func(_ context.Context, cancel func(), at int) bool {
			if at == k%4 {
				cancel()
			}
			return true
		})
		if !errors.Is(err, errCause) || src.inside.Load() != 0 {
			t.Fatalf("cancelled: %v, %d reads under way", err, src.inside.Load())
		}
		goroutines(t, before)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for b, err := range l.Batches(ctx) {
		if b != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("of a context that is done: %v, %v", b, err)
		}
	}
	goroutines(t, before)
	if got := dev.Stats().LiveBytes; got != live {
		t.Errorf("%d bytes live, %d before", got, live)
	}
}

var errCause = errors.New("the cause")

// TestCancelWhileWaiting: cancelling the context while the program waits for a batch ends the loop.
func TestCancelWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	reading := make(chan struct{})
	src := &counting{n: 100, read: func(i int) {
		if i == 20 {
			close(reading)
			<-ctx.Done()
		}
	}}
	go func() {
		<-reading
		cancel()
	}()
	seen := 0
	for b, err := range loader(t, src, data.Options{Batch: 10, Workers: 2}).Batches(ctx) {
		if err == nil {
			check(t, b)
			seen++
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if seen > 2 {
		t.Errorf("%d batches", seen)
	}
}

func TestRecordFails(t *testing.T) {
	errBad, errLater := errors.New("bad"), errors.New("later")
	src := &counting{n: 100, fail: map[int]error{
		57: &data.RecordError{File: "some.bin", Record: 7, Err: errBad}, 58: errLater, 91: errLater,
	}}
	before := goruntime.NumGoroutine()
	for _, workers := range []int{1, 2, 5, 16} {
		l := loader(t, src, data.Options{Batch: 10, Workers: workers})
		for range 2 { // the loader stays at that batch
			seen, ended := l.State().Position/10, false
			for b, err := range l.Batches(context.Background()) {
				if ended {
					t.Fatal("the sequence goes on after an error")
				}
				if err == nil {
					check(t, b)
					seen++
					continue
				}
				ended = true
				re, ok := errors.AsType[*data.RecordError](err)
				if !ok || !errors.Is(err, errBad) || re.File != "some.bin" || re.Record != 7 || b != nil {
					t.Errorf("%v, %v", b, err)
				}
			}
			if !ended || seen != 5 || l.State().Position != 50 {
				t.Errorf("%d workers: %d batches before the error, then %+v", workers, seen, l.State())
			}
		}
	}
	// Of several failures in a batch the first record's is returned, whichever is found first.
	src.read = func(i int) {
		if i == 57 {
			time.Sleep(3 * time.Millisecond)
		}
	}
	for range 5 {
		for _, err := range loader(t, src, data.Options{Batch: 100, Workers: 16}).Batches(context.Background()) {
			if !errors.Is(err, errBad) {
				t.Error(err)
			}
		}
	}
	delete(src.fail, 57)
	for _, err := range loader(t, src, data.Options{Batch: 100, Workers: 3}).Batches(context.Background()) {
		if err == nil || err.Error() != "record 58: later" {
			t.Error(err)
		}
	}
	goroutines(t, before)
}

// TestReadPanics: a panic of a source continues in the program's goroutine.
func TestReadPanics(t *testing.T) {
	before := goruntime.NumGoroutine()
	for _, workers := range []int{1, 4} {
		src := &counting{n: 100, read: func(i int) {
			if i == 33 {
				panic("no such thing")
			}
		}}
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.HasPrefix(r, "data: reading record 33: no such thing\n\ngoroutine") {
					t.Errorf("recovered %q", r)
				}
			}()
			for _, err := range loader(t, src, data.Options{Batch: 10, Workers: workers}).Batches(context.Background()) {
				if err != nil {
					t.Error(err)
				}
			}
			t.Error("no panic")
		}()
		src.read = func(i int) {
			if i >= 33 {
				goruntime.Goexit()
			}
		}
		failed := false
		for _, err := range loader(t, src, data.Options{Batch: 10, Workers: workers}).Batches(context.Background()) {
			failed = failed || err != nil
		}
		if !failed {
			t.Error("no error where reading ends its goroutine")
		}
	}
	goroutines(t, before)
}

// TestBodyPanics: a panic in the loop's body ends the goroutines as well.
func TestBodyPanics(t *testing.T) {
	l := loader(t, &counting{n: 1000}, data.Options{Batch: 10, Workers: 3})
	before := goruntime.NumGoroutine()
	for range 3 {
		func() {
			defer func() {
				if r := recover(); r != "enough" {
					t.Error(r)
				}
			}()
			for range l.Batches(context.Background()) {
				panic("enough")
			}
		}()
		next, stop := iter.Pull2(l.Batches(context.Background()))
		b, err, ok := next()
		if !ok || err != nil {
			t.Fatal(b, err)
		}
		check(t, b)
		stop()
	}
	if l.State().Position != 60 {
		t.Errorf("%+v", l.State())
	}
	goroutines(t, before)
}

// TestDeviceFails: a device that lacks room for a batch, or is closed meanwhile, ends the loop.
func TestDeviceFails(t *testing.T) {
	dev, err := millrace.Open("cpu:threads=1,memory=1MiB")
	if err != nil {
		t.Fatal(err)
	}
	wide, err := data.FromColumns(data.ColumnOf(make([]float32, 1<<20), 1<<10))
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range loader(t, wide, data.Options{Batch: 1 << 9, On: dev}).Batches(context.Background()) {
		if b != nil || !errors.Is(err, millrace.ErrOutOfMemory) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%v, %v", b, err)
		}
	}
	l := loader(t, wide, data.Options{Batch: 8, Prefetch: 1, On: dev})
	batches, failed := 0, false
	for b, err := range l.Batches(context.Background()) {
		switch {
		case err == nil:
			batches++
			b.Release()
		case errors.Is(err, millrace.ErrClosed):
			failed = true
		default:
			t.Error(err)
		}
		if batches == 2 && !failed {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if !failed || batches > 5 {
		t.Errorf("%d batches, failed %v", batches, failed)
	}
}

func TestOneLoopAtATime(t *testing.T) {
	l := loader(t, &counting{n: 10}, data.Options{Batch: 5})
	for b, err := range l.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(context.Background()) {
			if b != nil || err == nil {
				t.Errorf("a loop within a loop: %v, %v", b, err)
			}
		}
		if err := l.Restore(l.State()); err == nil {
			t.Error("restored within a loop")
		}
		b.Release()
	}
}

// TestBoundedAhead: the loader reads no further ahead than the options say.
func TestBoundedAhead(t *testing.T) {
	const batch, prefetch, inGo = 10, 3, 2
	src := &counting{n: 1000}
	l := loader(t, src, data.Options{Batch: batch, Workers: 4, Prefetch: prefetch})
	given := 0
	for b, err := range l.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		given++
		if given%20 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if ahead := int(src.reads.Load()) - given*batch; ahead > (prefetch+inGo)*batch {
			t.Fatalf("%d records are ahead", ahead)
		}
		if given%20 == 0 && given < 80 {
			if ahead := int(src.reads.Load()) - given*batch; ahead < prefetch*batch {
				t.Errorf("only %d records are ahead after a pause", ahead)
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	dev, err := millrace.Open("cpu:threads=1")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s := dev.NewStream()
	for name, on := range map[string]millrace.Place{"device": dev, "stream": s} {
		for b, err := range loader(t, &counting{n: 10}, data.Options{Batch: 5, On: on}).Batches(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			check(t, b)
			if b.X.Stream().Device().Stats().LiveBytes == 0 || dev.Stats().LiveBytes == 0 {
				t.Errorf("%s: the batch is elsewhere", name)
			}
			y := b.X.AddScalar(1)
			b.Release()
			if v, err := millrace.Values[float32](y); err != nil || v[0] < 1 {
				t.Error(v, err)
			}
			if err := b.X.Err(); !errors.Is(err, millrace.ErrReleased) {
				t.Errorf("released: %v", err)
			}
		}
	}
	s.Close()
	for b, err := range loader(t, &counting{n: 10}, data.Options{Batch: 5, On: s}).Batches(context.Background()) {
		if b != nil || !errors.Is(err, millrace.ErrClosed) {
			t.Errorf("closed stream: %v, %v", b, err)
		}
	}
	err = dev.Scope(func(sc *millrace.Scope) error {
		if _, err := data.NewLoader(&counting{n: 10}, data.Options{Batch: 5, On: sc}); err == nil {
			t.Error("batches in a scope")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadOptions(t *testing.T) {
	var noDevice *millrace.Device
	for name, c := range map[string]struct {
		src data.Source
		opt data.Options
	}{
		"no source":     {nil, data.Options{Batch: 1}},
		"batch":         {&counting{n: 1}, data.Options{}},
		"negative":      {&counting{n: 1}, data.Options{Batch: -1}},
		"no records":    {&counting{}, data.Options{Batch: 1}},
		"all dropped":   {&counting{n: 3}, data.Options{Batch: 4, DropLast: true}},
		"workers":       {&counting{n: 3}, data.Options{Batch: 4, Workers: -1}},
		"prefetch":      {&counting{n: 3}, data.Options{Batch: 4, Prefetch: -1}},
		"many workers":  {&counting{n: 3}, data.Options{Batch: 4, Workers: 1 << 20}},
		"far ahead":     {&counting{n: 3}, data.Options{Batch: 4, Prefetch: 1 << 40}},
		"memory":        {fields{{DType: millrace.Float32, Shape: []int{1 << 20}}}, data.Options{Batch: 1 << 40}},
		"part":          {&counting{n: 3}, data.Options{Batch: 4, Part: 1}},
		"part below 0":  {&counting{n: 3}, data.Options{Batch: 4, Part: -1, Parts: 2}},
		"parts":         {&counting{n: 3}, data.Options{Batch: 4, Parts: -2}},
		"many parts":    {&counting{n: 3}, data.Options{Batch: 4, Parts: 4}},
		"device":        {&counting{n: 3}, data.Options{Batch: 4, On: noDevice}},
		"no fields":     {fields{}, data.Options{Batch: 1}},
		"dtype":         {fields{{Name: "x"}}, data.Options{Batch: 1}},
		"size":          {fields{{DType: millrace.Int8, Shape: []int{math.MaxInt / 2, math.MaxInt / 2}}}, data.Options{Batch: 1}},
		"negative size": {fields{{DType: millrace.Int8, Shape: []int{-1}}}, data.Options{Batch: 1}},
		"rank":          {fields{{DType: millrace.Int8, Shape: []int{1, 1, 1, 1, 1, 1, 1, 1}}}, data.Options{Batch: 1}},
	} {
		if l, err := data.NewLoader(c.src, c.opt); l != nil || err == nil {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}

// fields is a source whose records are never read.
type fields []data.Field

func (f fields) Len() int              { return 1 << 30 }
func (f fields) Fields() []data.Field  { return f }
func (f fields) Read(int, []any) error { return errors.New("read") }
