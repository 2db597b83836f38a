package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

type device = gpurun.Runner

// Sizes at which gpurun changes its method: tests use sizes around them.
const (
	rowSteps    = 16384
	colSteps    = 1024
	fewColumns  = 64
	manyVectors = 1 << 11
	wideVectors = 1 << 12
	wideLong    = 64
	manySteps   = 4 * 64 * 64 // points or vectors of a Map whose invocations take several
	manyGroups  = 1 << 8
)

func points(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// openDevice opens the adapter, or skips with the reason; with the device in MILLRACE_REQUIRE it
// fails instead.
func openDevice(t testing.TB, c runtime.Config) *device {
	t.Helper()
	return open(t, c, nil)
}

// openAs is openDevice with a changed Info of the adapter.
func openAs(t testing.TB, say func(*gpurun.Info)) *device {
	t.Helper()
	return open(t, runtime.Config{}, say)
}

// software and hardware set the kind of the adapter.
func software(i *gpurun.Info) { i.Kind = "CPU" }
func hardware(i *gpurun.Info) { i.Kind = "DiscreteGPU" }

// saying is an adapter with another Info.
type saying struct {
	gpurun.Device
	info gpurun.Info
}

func (s saying) Info() gpurun.Info { return s.info }

// tiny and small set limits that cut nearly every launch: of kernels without and with an index.
func tiny(i *gpurun.Info)  { i.Limits.Binding, i.Points = max(4*i.Limits.Align, 256), 100 }
func small(i *gpurun.Info) { i.Limits.Binding, i.Points = max(4*i.Limits.Align, 1024), 100 }

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// missing is Missing of the driver under test.
func missing(t testing.TB, err error) {
	t.Helper()
	Missing(t, under.Name, err)
}

// Missing skips a test for which the driver has no device; it fails if MILLRACE_REQUIRE names the
// driver.
func Missing(t testing.TB, driver string, why any) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("MILLRACE_REQUIRE"), ","), driver) {
		t.Fatalf("required device: %v", why)
	}
	t.Skipf("no device: %v", why)
}

func open(t testing.TB, c runtime.Config, say func(*gpurun.Info)) *device {
	t.Helper()
	g, err := under.Open(c.Adapter)
	if err != nil {
		missing(t, err)
	}
	if say != nil {
		info := g.Info()
		say(&info)
		g = saying{g, info}
	}
	c.Subgroups, c.Narrow = max(c.Subgroups, under.Subgroups), max(c.Narrow, under.Narrow)
	d := gpurun.New(under.Name, g, under.Dialect, c)
	t.Cleanup(func() {
		// Every shader that ran can be stored: it reads back, and prints as the same text.
		for _, n := range d.Notes() {
			if n.Kind != runtime.KindShader {
				continue
			}
			key := strings.TrimPrefix(n.Key, d.Caps().Scope()+"\n")
			if _, _, err := shader.ReadNote(under.Dialect, key, n.Value); err != nil {
				t.Errorf("%v\n%s", err, key)
			}
		}
		if err := d.Close(); err != nil && !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func parse(t testing.TB, src string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return k
}

// trial is a launch with host data, the input of Interpret and of the device.
type trial struct {
	k       *codegen.Kernel
	dims    []int64
	kept    int
	args    []codegen.HostArg
	shared  []int // operand whose buffer an operand uses; itself by default
	scalars []uint64
}

func newTrial(k *codegen.Kernel, kept int, dims ...int64) *trial {
	x := &trial{k: k, dims: dims, kept: kept, args: make([]codegen.HostArg, len(k.Operands))}
	for i, o := range k.Operands {
		x.shared = append(x.shared, i)
		d := dims
		if o.Row {
			d = dims[:kept]
		}
		n := dense(&x.args[i].Access, d)
		if o.Kind != codegen.Index {
			x.args[i].Data = make([]byte, n*int64(o.DT.Size()))
		}
	}
	return x
}

// dense sets row-major strides and returns the number of elements.
func dense(a *runtime.Access, dims []int64) int64 {
	n := int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		a.Stride[d] = n
		n *= dims[d]
	}
	return n
}

// fill gives an operand random values.
func (x *trial) fill(rng *rand.Rand, operand int) {
	data := x.args[operand].Data
	switch dt := x.k.Operands[operand].DT; dt {
	case ir.Float32:
		for i := 0; i < len(data); i += 4 {
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(rng.NormFloat64()*3)))
		}
	case ir.Int32, ir.Uint32:
		for i := 0; i < len(data); i += 4 {
			v := int32(rng.IntN(41) - 20)
			if rng.IntN(8) == 0 {
				v = int32(rng.Uint32())
			}
			binary.LittleEndian.PutUint32(data[i:], uint32(v))
		}
	default:
		for i := range data {
			data[i] = byte(rng.Uint32())
			if dt == ir.Bool {
				data[i] &= 1
			}
		}
	}
}

func (x *trial) fillInputs(rng *rand.Rand) {
	for i, o := range x.k.Operands {
		if o.Kind == codegen.Input {
			x.fill(rng, i)
		}
	}
}

// allScalars sets every scalar of the kernel to v.
func (x *trial) allScalars(v float32) {
	for range x.k.Scalars {
		x.scalars = append(x.scalars, uint64(math.Float32bits(v)))
	}
}

// launch uploads the trial's data and returns the launch.
func (x *trial) launch(t testing.TB, d *device) *runtime.Launch {
	t.Helper()
	prog, err := d.Build(x.k)
	if err != nil {
		t.Fatalf("build: %v\n%s", err, x.k)
	}
	l := &runtime.Launch{Prog: prog, Rank: len(x.dims), Kept: x.kept, Scalars: x.scalars}
	copy(l.Dims[:], x.dims)
	for i, o := range x.k.Operands {
		a := x.args[i].Access
		if o.Kind != codegen.Index && x.shared[i] == i {
			n := int64(len(x.args[i].Data) / o.DT.Size())
			buf, err := d.Alloc(n * int64(d.Caps().ElemSize[o.DT]))
			must(t, err)
			t.Cleanup(func() { d.Free(buf) })
			must(t, d.Write(buf, o.DT, 0, x.args[i].Data))
			a.Buf = buf
		}
		l.Args = append(l.Args, a)
	}
	for i, o := range x.k.Operands {
		if o.Kind != codegen.Index {
			l.Args[i].Buf = l.Args[x.shared[i]].Buf
		}
	}
	return l
}

// check runs the trial on the device and compares every element of every output with the
// interpreter, within tol.
func (x *trial) check(t testing.TB, d *device, tol ir.Tolerance) *runtime.Launch {
	t.Helper()
	l := x.launch(t, d)
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		var ce *runtime.CompileError
		if errors.As(err, &ce) {
			t.Fatalf("run: %s\n%s", ce.Log, ce.Source)
		}
		t.Fatalf("run: %v\n%s", err, x.k)
	}
	x.compare(t, d, l, tol)
	return l
}

func (x *trial) compare(t testing.TB, d *device, l *runtime.Launch, tol ir.Tolerance) {
	t.Helper()
	for i := range x.args {
		if s := x.shared[i]; s != i {
			x.args[i].Data = x.args[s].Data
		}
	}
	if err := codegen.Interpret(x.k, x.dims, x.kept, x.args, x.scalars); err != nil {
		t.Fatalf("interpret: %v\n%s", err, x.k)
	}
	for i, o := range x.k.Operands {
		if o.Kind != codegen.Output {
			continue
		}
		got := make([]byte, len(x.args[i].Data))
		must(t, d.Read(got, o.DT, l.Args[i].Buf, 0))
		if at, msg := differ(o.DT, got, x.args[i].Data, tol); msg != "" {
			for j, in := range x.k.Operands {
				if size := in.DT.Size(); in.Kind == codegen.Input && len(x.args[j].Data) >= (at+1)*size {
					msg += fmt.Sprintf("; input %d there: %s", j, show(in.DT, x.args[j].Data[at*size:]))
				}
			}
			t.Fatalf("output %d: %s\ndims %v kept %d args %+v\n%s\n%s", i, msg, x.dims, x.kept, x.args[i].Access, x.k, sources(d, l))
		}
	}
}

func sources(d *device, l *runtime.Launch) string {
	var b strings.Builder
	for _, v := range d.Source(l.Prog) {
		b.WriteString(v.Source)
	}
	return b.String()
}

// differ describes the first element outside the tolerance.
func differ(dt ir.DType, got, want []byte, tol ir.Tolerance) (at int, msg string) {
	size := dt.Size()
	bad := 0
	for i := 0; i+size <= len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if string(g) == string(w) {
			continue
		}
		if dt.IsFloat() {
			x, y, tol := ir.BitsFloat(dt, element(g)), ir.BitsFloat(dt, element(w)), tol.In(dt)
			if x == y || x != x && y != y || math.Abs(x-y) <= tol.Abs+tol.Rel*math.Abs(y) {
				continue
			}
			if x == 0 && dt != ir.Float16 && math.Abs(y) < 0x1p-126 { // a denormal, flushed
				continue
			}
		}
		if bad++; bad == 1 {
			at, msg = i/size, fmt.Sprintf("element %d is %s, want %s", i/size, show(dt, g), show(dt, w))
		}
	}
	if bad == 0 {
		return 0, ""
	}
	return at, fmt.Sprintf("%s (%d of %d differ)", msg, bad, len(want)/size)
}

func show(dt ir.DType, b []byte) string {
	return ir.FormatBits(dt, element(b))
}

// element returns the bits of an element.
func element(b []byte) uint64 {
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:])
}
