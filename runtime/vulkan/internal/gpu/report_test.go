//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

const lookUp = "in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 1 : int32\n%1 = loadat 0 error %0 : int32\nstore 2 %1"

// looks is a list of look-ups, each in the result of the one before.
type looks struct {
	t    *testing.T
	gpu  *Device
	dev  *gpurun.Runner
	bufs []runtime.Buffer // the table, indices, results
	list []runtime.Launch
}

const tableSize = 50

func newLooks(t *testing.T, many int) *looks {
	x := &looks{t: t, gpu: open(t)}
	x.dev = gpurun.New("vulkan", x.gpu, spirv.Dialect, runtime.Config{})
	k, err := codegen.Parse(lookUp)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := x.dev.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	for range many + 2 {
		b, err := x.dev.Alloc(tableSize * 4)
		if err != nil {
			t.Fatal(err)
		}
		x.bufs = append(x.bufs, b)
	}
	for i := range many {
		l := runtime.Launch{Prog: prog, Rank: 1, Kept: 1, Args: make([]runtime.Access, 3)}
		l.Dims[0] = tableSize
		table := 0
		if i > 0 {
			table = i + 1
		}
		for j, buf := range []int{table, 1, i + 2} {
			l.Args[j].Buf, l.Args[j].Stride[0] = x.bufs[buf], 1
		}
		l.Args[0].Stride[0], l.Args[0].IndexStride, l.Args[0].IndexSize = 0, 1, tableSize
		x.list = append(x.list, l)
	}
	return x
}

// write sets a buffer's elements.
func (x *looks) write(buf int, of func(i int) int32) {
	x.t.Helper()
	data := make([]byte, tableSize*4)
	for i := range tableSize {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(of(i)))
	}
	if err := x.dev.Write(x.bufs[buf], ir.Int32, 0, data); err != nil {
		x.t.Fatal(err)
	}
}

// read returns a buffer's elements.
func (x *looks) read(buf int) (all [tableSize]int32) {
	x.t.Helper()
	data := make([]byte, tableSize*4)
	if err := x.dev.Read(data, ir.Int32, x.bufs[buf], 0); err != nil {
		x.t.Fatal(err)
	}
	for i := range all {
		all[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return all
}

// TestSkips: a launch that overwrites what a failing launch reads, and all that follow, are skipped on
// the device if there is a fault. The list stays one submission.
func TestSkips(t *testing.T) {
	for _, set := range []string{"", "apart"} {
		t.Run(set, func(t *testing.T) {
			t.Setenv(settingsIn, set)
			x := newLooks(t, 6)
			if !x.gpu.Info().Skips {
				t.Skip("the driver cannot skip dispatches")
			}
			for i := 1; i < 6; i += 2 { // over the table, which the next launch reads
				x.list[i].Args[2].Buf = x.bufs[0]
				if i+1 < 6 {
					x.list[i+1].Args[0].Buf = x.bufs[0]
				}
			}
			p := x.dev.Prepare(x.list, nil)
			if p == nil {
				t.Fatal("not prepared")
			}
			defer p.Close()
			for i := range 12 {
				bad := i%3 == 2
				for _, run := range []func() error{func() error { return x.dev.Run(x.list) }, p.Run} {
					x.write(0, func(j int) int32 { return int32((j + 1) % tableSize) })
					x.write(1, func(j int) int32 {
						if bad && j == 40 {
							return -5
						}
						return int32((j + 1) % tableSize)
					})
					for _, buf := range []int{4, 6} { // results of launches that a fault skips
						x.write(buf, func(int) int32 { return -1 })
					}
					before := x.gpu.main.last
					err := run()
					var le *runtime.LaunchError
					if errors.As(err, &le) != bad || bad && le.Index != 0 || !bad && err != nil {
						t.Errorf("run %d: %v", i, err)
					}
					if n := x.gpu.main.last - before; n != 1 && (n != 2 || i != 1) {
						t.Errorf("run %d: %d submissions", i, n)
					}
					table, later, last := int32(1+6), int32(1+3), int32(1+5)
					if bad {
						table, later, last = 1, -1, -1
					}
					if a, b, c := x.read(0)[0], x.read(4)[0], x.read(6)[0]; a != table || b != later || c != last {
						t.Errorf("run %d: %d in the table and %d, %d in results, want %d, %d, %d", i, a, b, c, table, later, last)
					}
				}
			}
			if s := x.dev.Stats(); s.Waits != 24 || s.Replayed == 0 {
				t.Errorf("%d waits, %d launches as recorded", s.Waits, s.Replayed)
			}
		})
	}
}

// TestUnless: words that cannot skip a dispatch are refused.
func TestUnless(t *testing.T) {
	d := open(t)
	report, err := d.NewBuffer(16, gpurun.Report)
	if err != nil {
		t.Fatal(err)
	}
	storage, err := d.NewBuffer(16, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		unless gpurun.Range
		want   bool
	}{
		"good": {gpurun.Range{Buf: report, Off: 8, Size: 8}, d.Info().Skips}, "nothing to look at": {gpurun.Range{}, false},
		"past the end": {gpurun.Range{Buf: report, Off: 12, Size: 8}, false}, "not aligned": {gpurun.Range{Buf: report, Off: 2, Size: 8}, false},
		"storage": {gpurun.Range{Buf: storage, Size: 8}, false},
	} {
		if err := d.validUnless(&gpurun.Dispatch{Unless: x.unless, Look: true}); (err == nil) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReports: a run of kernels that may report an index out of range is one submission, prepared or
// not, with its wait: the host reads the reports where the device writes them, also where it sees no
// other memory.
func TestReports(t *testing.T) {
	for _, set := range []string{"", "apart", "fence", "noskip"} {
		t.Run(set, func(t *testing.T) {
			t.Setenv(settingsIn, set)
			x := newLooks(t, 3)
			p := x.dev.Prepare(x.list, nil)
			if p == nil {
				t.Fatal("not prepared")
			}
			defer p.Close()
			for i := range 10 {
				bad := i%3 == 2
				x.write(0, func(i int) int32 { return int32(7 * i % tableSize) })
				x.write(1, func(j int) int32 {
					if bad && j == 9 {
						return int32(tableSize + i)
					}
					return int32(j)
				})
				for _, run := range []func() error{func() error { return x.dev.Run(x.list) }, p.Run} {
					before := x.gpu.main.last
					err := run()
					var le *runtime.LaunchError
					if errors.As(err, &le) != bad || bad && (le.Index != 0 || !errors.Is(err, ir.ErrIndex)) || !bad && err != nil {
						t.Errorf("run %d: %v", i, err)
					}
					if n := x.gpu.main.last - before; n != 1 && (n != 2 || i != 1) { // the second Run prepares, and may copy words
						t.Errorf("run %d: %d submissions", i, n)
					}
				}
				if got := x.read(4); !bad && got[3] != 21 {
					t.Errorf("run %d: %v", i, got)
				}
			}
			if s := x.dev.Stats(); s.Waits != 20 || s.Replayed == 0 {
				t.Errorf("%d waits, %d launches as recorded", s.Waits, s.Replayed)
			}
		})
	}
}
