package roofline

import (
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/internal/machine"
)

// ErrNone says that no code for the measurement could be made.
var ErrNone = errors.New("roof: there is no machine code for this processor")

// Roof is code that runs at a core's limit.
type Roof struct {
	code *machine.Code
	r    *native.Roof
}

// New makes a Roof. It is collected with its code.
func New() (*Roof, error) {
	isa := map[machine.ISA]*native.ISA{machine.AVX2: amd64.AVX2, machine.AVX512: amd64.AVX512}[machine.Level()]
	if isa == nil {
		return nil, ErrNone
	}
	r, err := native.NewRoof(isa)
	if err != nil {
		return nil, err
	}
	code, err := machine.Map(r.Code)
	if err != nil {
		return nil, err
	}
	return &Roof{code, r}, nil
}

const (
	// callLoops keeps a call below 200 µs, because the collector may wait for it: a loop of
	// multiplications and additions takes about 15 ns at most.
	callLoops = 5000
	// callBytes does the same for memory of 5 GB/s.
	callBytes = 512 << 10
	// smallBytes is the size up to which one thread copies faster than it hands over half of the
	// work.
	smallBytes = 1 << 20
)

// MultiplyAdd makes each thread multiply and add elements of size bytes (4 or 8) for about the
// given time. It returns the operations of all threads, two for each multiplication with its
// addition, and the time.
func (r *Roof) MultiplyAdd(threads, size int, about time.Duration) (ops float64, took time.Duration) {
	entry, flops := r.r.FMA, float64(r.r.Flops)
	if size == 8 {
		entry, flops = r.r.FMA64, flops/2
	}
	calls := make([]int, threads)
	took = onThreads(threads, func(i int) {
		for start := time.Now(); time.Since(start) < about || calls[i] == 0; calls[i]++ {
			r.call(entry, native.RoofFrame{Count: callLoops})
		}
	})
	for _, n := range calls {
		ops += float64(n) * callLoops * flops
	}
	return ops, took
}

// Copy copies src to dst by several threads, past the caches if past is set. Both have the same
// length and begin at cache lines. The part of a thread's share that is no multiple of Granule
// bytes is left out.
func (r *Roof) Copy(threads int, dst, src []byte, past bool) time.Duration {
	entry := r.r.Copy
	if past {
		entry = r.r.CopyPast
	}
	return r.move(entry, threads, src, func(at, _ int) unsafe.Pointer { return unsafe.Pointer(&dst[at]) })
}

// Read reads src, which begins at a cache line, in the same way.
func (r *Roof) Read(threads int, src []byte) time.Duration {
	return r.move(r.r.Read, threads, src, func(at, n int) unsafe.Pointer { return unsafe.Pointer(&src[at+n/2]) })
}

// Granule is the number of bytes moved at a time.
func (r *Roof) Granule() int { return r.r.CopyBytes }

// move calls code for all of src; second returns the other address for each n bytes.
func (r *Roof) move(entry, threads int, src []byte, second func(at, n int) unsafe.Pointer) time.Duration {
	if len(src) < smallBytes {
		threads = 1
	}
	granules := len(src) / r.r.CopyBytes
	return onThreads(threads, func(i int) {
		most := callBytes / r.r.CopyBytes
		for at, end := granules*i/threads, granules*(i+1)/threads; at < end; at += most {
			skip, count := at*r.r.CopyBytes, min(most, end-at)
			r.call(entry, native.RoofFrame{Dst: second(skip, count*r.r.CopyBytes), Src: unsafe.Pointer(&src[skip]), Count: int64(count)})
		}
	})
}

func (r *Roof) call(entry int, f native.RoofFrame) {
	machine.Call(r.code.Addr(entry), unsafe.Pointer(&f), machine.KeepMXCSR)
	goruntime.KeepAlive(r)
}

// onThreads runs f for each of n shares at once and returns the time since all had started: waking
// threads is not measured.
func onThreads(n int, f func(i int)) time.Duration {
	var there atomic.Int64
	enough := goruntime.GOMAXPROCS(0) >= n
	starts, ends := make([]time.Time, n), make([]time.Time, n)
	run := func(i int) {
		for there.Add(1); there.Load() < int64(n); {
			if !enough {
				goruntime.Gosched() // otherwise, on one processor, a yielding thread may wait behind another
			}
		}
		starts[i] = time.Now()
		f(i)
		ends[i] = time.Now()
	}
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { run(i) })
	}
	run(0)
	wg.Wait()
	first, last := slices.MinFunc(starts, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	return last.Sub(first)
}
