//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/internal/nap"
)

func init() {
	programs["collectives"] = collectives
	programs["notes"] = exchangeNotes
	programs["misuse"] = misuse
	programs["abort"] = abortOne
	programs["huge"] = huge
}

// TestCollectives: bytes arrive where they should, for uneven parts, parts of none, messages that
// are split, several operations at once, while the garbage collector runs.
func TestCollectives(t *testing.T) { each(t, "collectives", []int{1, 2, 3, 4}) }

// TestNotes: Notes arrive whole and in order, beside collectives, at oneself too.
func TestNotes(t *testing.T) { each(t, "notes", []int{1, 3}) }

// TestMisuse: wrong operands are errors that leave the driver as it was.
func TestMisuse(t *testing.T) { each(t, "misuse", []int{1, 2}) }

// TestHuge: more bytes than fit into one message.
func TestHuge(t *testing.T) {
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("needs 5 GiB of memory and is slow: MILLRACE_LONG=1 runs it")
	}
	each(t, "huge", []int{2})
}

// TestAbort: one rank ends them all.
func TestAbort(t *testing.T) {
	for name, j := range jobs(t) {
		t.Run(name, func(t *testing.T) {
			out, err := j.run(t, "abort", 3)
			if err == nil || strings.Contains(out, "is done") {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// opened opens the driver on a thread of its own.
func opened() (*driver, error) {
	runtime.LockOSThread()
	nap.Precise()
	d, err := open(context.Background())
	if err != nil {
		return nil, err
	}
	return d.(*driver), nil
}

// closed closes the driver. The program goes on: memory comes and goes, and faults are panics.
func closed(d *driver) error {
	if err := d.Close(); err != nil {
		return err
	}
	_, err1 := d.Poll()
	_, err2 := d.Broadcast(nil, 0)
	_, err3 := d.AllGather(nil, nil, nil)
	for i, err := range []error{err1, err2, err3, d.Note(0, nil), d.Close()} {
		if !errors.Is(err, errClosed) {
			return fmt.Errorf("call %d after Close: %w", i, err)
		}
	}
	d.Abort(1)
	for range 3 {
		b := make([]byte, 64<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		debug.FreeOSMemory()
	}
	return recovers()
}

// wait polls until all operations are complete.
func wait(d *driver, all ...dist.Pending) error {
	for _, p := range all {
		for {
			done, err := p.Done()
			if err != nil {
				return err
			}
			if done {
				break
			}
			if some, err := d.Poll(); err != nil {
				return err
			} else if !some {
				nap.For(20_000)
			}
		}
	}
	return nil
}

// content fills b with what rank from sends to rank to.
func content(b []byte, from, to, round int) {
	random := rand.NewPCG(uint64(from)<<32|uint64(to), uint64(round))
	for i := range b {
		b[i] = byte(random.Uint64())
	}
}

// offsets puts parts of the given sizes one behind another, from a first offset on.
func offsets(first int, sizes []int) []int {
	at := []int{first}
	for _, s := range sizes {
		at = append(at, at[len(at)-1]+s)
	}
	return at
}

func collectives() error {
	d, err := opened()
	if err != nil {
		return err
	}
	var ending atomic.Bool
	defer ending.Store(true)
	go func() {
		for !ending.Load() {
			runtime.GC()
		}
	}()
	for round, most := range []int{0, 1, 100, 5000, 70_000, 600_000} {
		for _, d.longest = range []int{longest, 997} {
			if most > 100*d.longest {
				continue
			}
			var checks []func() error
			var pending []dist.Pending
			for k := range 3 {
				d.few = k % 2 * few // MPI_Iallgatherv, or messages
				for _, begin := range []func(*driver, int, int) (dist.Pending, func() error, error){allToAll, allGather, broadcast} {
					p, check, err := begin(d, most, 10*round+k)
					if err != nil {
						return err
					}
					pending, checks = append(pending, p), append(checks, check)
				}
			}
			if err := wait(d, pending...); err != nil {
				return err
			}
			for i, check := range checks {
				if err := check(); err != nil {
					return fmt.Errorf("operation %d, parts of up to %d bytes, messages of %d: %w", i, most, d.longest, err)
				}
			}
		}
	}
	if len(d.active) != 0 {
		return fmt.Errorf("%d operations are left", len(d.active))
	}
	in := d.Info()
	if in.LocalSize != in.Size || in.LocalRank != in.Rank || in.Host == "" || len(strings.Fields(in.Library)) < 3 || strings.ContainsAny(in.Library, ",\n") {
		return fmt.Errorf("info %+v", in)
	}
	finish(d, "collectives")
	return closed(d)
}

// sizes draws how many bytes go from each rank to each; a third are none.
func sizes(n, most, round int) [][]int {
	random := rand.New(rand.NewPCG(uint64(most), uint64(round)))
	table := make([][]int, n)
	for from := range table {
		table[from] = make([]int, n)
		for to := range table[from] {
			if random.IntN(3) > 0 {
				table[from][to] = random.IntN(most + 1)
			}
		}
	}
	return table
}

func allToAll(d *driver, most, round int) (dist.Pending, func() error, error) {
	n, own := d.info.Size, d.info.Rank
	table, column := sizes(n, most, round), make([]int, n)
	for r := range n {
		column[r] = table[r][own]
	}
	sendAt, recvAt := offsets(round%3, table[own]), offsets(5, column)
	send, recv := make([]byte, sendAt[n]), make([]byte, recvAt[n]+3)
	for r := range n {
		content(part(send, sendAt, r), own, r, round)
	}
	p, err := d.AllToAll(send, recv, sendAt, recvAt)
	return p, func() error {
		want := make([]byte, len(recv))
		for r := range n {
			if r != own {
				content(part(want, recvAt, r), r, own, round)
			}
		}
		return same("AllToAll", recv, want)
	}, err
}

func allGather(d *driver, most, round int) (dist.Pending, func() error, error) {
	n, own := d.info.Size, d.info.Rank
	recvAt := offsets(0, sizes(n, most, round)[0])
	recv := make([]byte, recvAt[n])
	send := part(recv, recvAt, own) // the result's own part, or another slice
	if round%2 == 0 {
		send = make([]byte, len(send))
	}
	content(send, own, 0, round)
	p, err := d.AllGather(send, recv, recvAt)
	return p, func() error {
		want := make([]byte, len(recv))
		for r := range n {
			content(part(want, recvAt, r), r, 0, round)
		}
		return same("AllGather", recv, want)
	}, err
}

func broadcast(d *driver, most, round int) (dist.Pending, func() error, error) {
	root := round % d.info.Size
	buf, want := make([]byte, most), make([]byte, most)
	content(want, root, 0, round)
	if d.info.Rank == root {
		copy(buf, want)
	}
	p, err := d.Broadcast(buf, root)
	return p, func() error { return same("Broadcast", buf, want) }, err
}

func same(name string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#x, not %#x", name, i, len(got), got[i], want[i])
		}
	}
	return nil
}

func exchangeNotes() error {
	d, err := opened()
	if err != nil {
		return err
	}
	n, own := d.info.Size, d.info.Rank
	const each = 20
	text := func(from, to, k int) string {
		return strings.Repeat(fmt.Sprintf("note %d of %d to %d ", k, from, to), dist.MaxNote/10)[:k*dist.MaxNote/(each-1)]
	}
	p, _, err := allGather(d, 100_000, 1)
	if err != nil {
		return err
	}
	for k := range each {
		for r := range n {
			if err := d.Note(r, []byte(text(own, r, k))); err != nil {
				return err
			}
		}
	}
	next := make([]int, n)
	for got := 0; got < n*each; {
		from, b, ok := d.Notes()
		if !ok {
			if some, err := d.Poll(); err != nil {
				return err
			} else if !some {
				nap.For(20_000)
			}
			continue
		}
		if want := text(from, own, next[from]); string(b) != want {
			return fmt.Errorf("from %d came %q, not %q", from, b, want)
		}
		next[from]++
		got++
	}
	if err := wait(d, p); err != nil {
		return err
	}
	if from, b, ok := d.Notes(); ok && string(b) != "late" {
		return fmt.Errorf("from %d came %q, which nobody sent", from, b)
	}
	if n > 1 && own == 0 { // one that its receiver may not have asked for before Close
		if err := d.Note(1, []byte("late")); err != nil {
			return err
		}
	}
	finish(d, "notes")
	return closed(d)
}

func misuse() error {
	d, err := opened()
	if err != nil {
		return err
	}
	n := d.info.Size
	good := make([]int, n+1)
	with := func(i, v int) []int { at := append([]int(nil), good...); at[i] = v; return at }
	b := make([]byte, 8)
	for i, f := range []func() error{
		func() error { _, err := d.AllToAll(b, b, good[:n], good); return err },
		func() error { _, err := d.AllToAll(b, b, good, with(0, -1)); return err },
		func() error { _, err := d.AllToAll(b, b, with(n, 9), good); return err },
		func() error { _, err := d.AllToAll(b, b, with(0, 1), good); return err },
		func() error { _, err := d.AllGather(b, b, nil); return err },
		func() error { _, err := d.AllGather(b, b, good); return err },
		func() error { _, err := d.Broadcast(b, n); return err },
		func() error { _, err := d.Broadcast(b, -1); return err },
		func() error { return d.Note(n, nil) },
		func() error { return d.Note(0, make([]byte, dist.MaxNote+1)) },
		func() error { _, err := open(context.Background()); return err },
	} {
		if err := f(); err == nil {
			return fmt.Errorf("misuse %d is no error", i)
		} else if !strings.HasPrefix(err.Error(), "mpi: ") {
			return err
		}
	}
	p, check, err := allToAll(d, 1000, 7)
	if err != nil {
		return err
	}
	if n > 1 {
		if err := d.Close(); err == nil && len(d.active) > 0 {
			return fmt.Errorf("closed with pending operations")
		}
	}
	if err := wait(d, p); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	finish(d, "misuse")
	return closed(d)
}

func abortOne() error {
	d, err := opened()
	if err != nil {
		return err
	}
	if d.info.Rank == 1 {
		d.Abort(3)
		return fmt.Errorf("still here")
	}
	buf := make([]byte, 1<<20)
	for { // rank 1 never comes
		p, err := d.Broadcast(buf, 1)
		if err != nil {
			return err
		}
		if err := wait(d, p); err != nil {
			return err
		}
	}
}

func huge() error {
	d, err := opened()
	if err != nil {
		return err
	}
	const n = 1<<30 + 1
	b := make([]byte, 2*n)
	own := b[d.info.Rank*n:][:n]
	for i := range own {
		own[i] = byte(i>>20 + d.info.Rank)
	}
	p, err := d.AllGather(own, b, []int{0, n, 2 * n})
	if err != nil {
		return err
	}
	if err := wait(d, p); err != nil {
		return err
	}
	for r := range 2 {
		for i, v := range b[r*n:][:n] {
			if v != byte(i>>20+r) {
				return fmt.Errorf("byte %d of rank %d is %d", i, r, v)
			}
		}
	}
	if d.info.Rank == 0 {
		clear(b[n:])
	} else {
		clear(b)
	}
	if p, err = d.Broadcast(b, 0); err != nil {
		return err
	}
	if err := wait(d, p); err != nil {
		return err
	}
	for i, v := range b {
		if want := byte(i >> 20); i < n && v != want || i >= n && v != 0 {
			return fmt.Errorf("byte %d of the broadcast is %d", i, v)
		}
	}
	finish(d, "huge")
	return closed(d)
}
