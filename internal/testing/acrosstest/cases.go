package acrosstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
)

// Digests lists the cases that compare a training with the oracle's: models of the table, in some ways
// to run them, and random programs.
func Digests(ways, programs int) []disttest.Case {
	var all []disttest.Case
	for i, m := range Models() {
		all = append(all, digest(m, i, ways))
		if m.Wire == millrace.Invalid && (i%6 == 1 || ways == len(everyWay)) {
			m.Name, m.Wire = m.Name+" by bfloat16", millrace.BFloat16
			all = append(all, digest(m, i, 1))
		}
	}
	for seed := range uint64(programs) {
		all = append(all, digest(Random(seed), int(seed), 1))
	}
	return all
}

// way is a How with the number of the device's threads.
type way struct {
	How
	threads int
}

// everyWay lists all ways to run a model.
var everyWay = func() (all []way) {
	for i, buckets := range []int{1, 4, 12, 0} {
		for _, threads := range []int{1, 2} {
			for _, record := range []bool{true, false} {
				all = append(all, way{How{Record: record, Buckets: buckets, Late: (i+threads)%2 == 0, Views: i%2 == 1}, threads})
			}
		}
	}
	return all
}()

// some chooses ways, and divides the state in every other one. Models and numbers of ranks differ in
// the choice, so that few ways of each are all of some.
func some(model, ranks, count int) (list []way) {
	for i := range min(count, len(everyWay)) {
		w := everyWay[(7*model+3*ranks+5*i)%len(everyWay)]
		w.File = count > 1
		w.Sharded = (model+ranks/2+i)%2 == 1
		list = append(list, w)
	}
	return list
}

// digest is a case in which ranks train a model in some ways, each time to the oracle's values and to
// one file.
func digest(m Model, number, ways int) disttest.Case {
	return disttest.Case{Name: "across, " + m.Name, Ranks: m.Sizes(), Options: options(), Run: func(ctx context.Context, w *dist.World) error {
		want, err := oracles.of(m, w.Size())
		if err != nil {
			return err
		}
		var file []byte
		var bad []error // ranks stay together after a value that is wrong
		for _, way := range some(number, w.Size(), ways) {
			if way.At, err = Place(way.threads); err != nil {
				return err
			}
			got, err := m.Run(ctx, w, way.How)
			if err != nil {
				return fmt.Errorf("%v, %d threads: %w", way, way.threads, err)
			}
			want := want
			if way.Sharded && w.Rank() > 0 {
				want = want.Without("optim.") // rank 0 has the state of all
			}
			if err := got.Without(".grad.").Differs(want); err != nil {
				bad = append(bad, fmt.Errorf("%v, %d threads: %w", way, way.threads, err))
			}
			if file == nil {
				file = got.File
			}
			if got.File != nil && !bytes.Equal(got.File, file) {
				bad = append(bad, fmt.Errorf("%v, %d threads: the file has other bytes", way, way.threads))
			}
		}
		return errors.Join(append(bad, w.Barrier(ctx))...)
	}}
}

// options make a rank that waits for others in vain an error, before the test's time is over.
func options() dist.Options { return dist.Options{Deadline: time.Minute} }

// oracles keeps what the oracle computed: ranks that are goroutines share it.
var oracles = memo{results: map[string]func() (Result, error){}}

type memo struct {
	sync.Mutex
	results map[string]func() (Result, error)
}

func (k *memo) of(m Model, ranks int) (Result, error) {
	name := m.Name
	if n := m.Leaves / ranks; m.Cut != nil || n&(n-1) != 0 || ranks&(ranks-1) != 0 {
		name = fmt.Sprintf("%s on %d", m.Name, ranks) // otherwise the number of ranks makes no difference
	}
	k.Lock()
	f := k.results[name]
	if f == nil {
		f = sync.OnceValues(func() (Result, error) {
			at, err := Place(1)
			if err != nil {
				return Result{}, err
			}
			return m.Oracle(at, ranks)
		})
		k.results[name] = f
	}
	k.Unlock()
	return f()
}
