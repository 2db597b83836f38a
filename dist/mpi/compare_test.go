//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

func init() { programs["compare"] = compare }

// TestCompare logs how long sums of a World take beside MPI_Allreduce of the same library, in turns
// in one job. It fails for no figure, but if the sums differ.
func TestCompare(t *testing.T) {
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("it only measures: MILLRACE_LONG=1 runs it")
	}
	for name, j := range jobs(t) {
		for _, n := range []int{2, 3, 4} {
			out, err := j.run(t, "compare", n)
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, line := range regexp.MustCompile(`(?m)^figure: .*$`).FindAllString(out, -1) {
				t.Logf("%s, %d ranks: %s", name, n, line)
			}
		}
	}
}

// native runs functions on the thread of the World's driver, where MPI may be called.
type native struct {
	*driver
	ask chan func()
	sum uintptr // MPI_Allreduce
	add handle  // MPI_SUM
	f32 handle  // MPI_FLOAT
}

// Poll also runs the functions that were asked for.
func (n *native) Poll() (bool, error) {
	select {
	case f := <-n.ask:
		f()
		return true, nil
	default:
		return n.driver.Poll()
	}
}

// openNative opens the driver, and finds what MPI_Allreduce needs.
func openNative(ctx context.Context) (*native, error) {
	d, err := start(ctx)
	if err != nil {
		return nil, err
	}
	n := &native{driver: d, ask: make(chan func())}
	if n.sum, err = purego.Dlsym(d.so, "MPI_Allreduce"); err != nil {
		return nil, err
	}
	switch d.abi {
	case &openMPI:
		for name, to := range map[string]*uintptr{"ompi_mpi_op_sum": &n.add.number, "ompi_mpi_float": &n.f32.number} {
			if *to, err = purego.Dlsym(d.so, name); err != nil {
				return nil, err
			}
		}
	case &mpich:
		n.add.number, n.f32.number = 0x58000003, 0x4c00040a
	default:
		return nil, errors.New("the constants of this family are not known here")
	}
	return n, nil
}

// allReduce is how long MPI_Allreduce takes on all ranks that begin together.
func (n *native) allReduce(dst, src []float32) (took time.Duration, err error) {
	done := make(chan bool)
	n.ask <- func() {
		var one [2]float32
		call := func(dst, src []float32) error {
			return n.call("MPI_Allreduce", n.sum, uintptr(unsafe.Pointer(&src[0])), uintptr(unsafe.Pointer(&dst[0])),
				uintptr(len(src)), n.f32.number, n.add.number, n.comm)
		}
		err = call(one[:1], one[1:])
		begun := time.Now()
		err = errors.Join(err, call(dst, src))
		took = time.Since(begun)
		close(done)
	}
	<-done
	return took, err
}

func compare() error {
	ctx := context.Background()
	var n *native
	w, err := dist.Open(ctx, dist.Options{Opener: &dist.Opener{
		Open:     func(ctx context.Context) (dist.Driver, error) { var err error; n, err = openNative(ctx); return n, err },
		Launched: func() (string, int) { return "", 0 },
	}})
	if err != nil {
		return err
	}
	for _, bytes := range []int{4 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20} {
		if err := compareAt(ctx, w, n, bytes); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// compareAt measures both ways of adding so many bytes.
func compareAt(ctx context.Context, w *dist.World, n *native, bytes int) error {
	src, dst := make([]float32, bytes/4), make([]float32, bytes/4)
	for i := range src {
		src[i] = float32(i%1000*(w.Rank()+1)) / 8 // sums are exact
	}
	x := millrace.FromSlice(src, len(src))
	defer x.Release()
	if err := x.Eval(); err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for i := range 5 + 15 {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		begun := time.Now()
		sum := w.AllReduce(x)
		err := sum.Eval()
		took := time.Since(begun)
		if err != nil {
			return err
		}
		other, err := n.allReduce(dst, src)
		if err != nil {
			return err
		}
		if i == 0 {
			got := make([]float32, len(src))
			if err := millrace.ReadInto(got, sum); err != nil {
				return err
			}
			for k := range got {
				if math.Float32bits(got[k]) != math.Float32bits(dst[k]) {
					return fmt.Errorf("element %d of %d is %v, and of MPI_Allreduce %v", k, len(got), got[k], dst[k])
				}
			}
		}
		sum.Release()
		if i >= 5 {
			ours, theirs = append(ours, took), append(theirs, other)
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if a, b := ours[len(ours)/2], theirs[len(theirs)/2]; w.Rank() == 0 {
		os.Stdout.WriteString(fmt.Sprintf("\nfigure: %d KiB: AllReduce %v, MPI_Allreduce %v, ratio %.2f\n",
			bytes>>10, a.Round(time.Microsecond), b.Round(time.Microsecond), float64(a)/float64(b)))
	}
	return nil
}
