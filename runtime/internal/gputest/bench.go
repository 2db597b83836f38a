package gputest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

const reluKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = relu %0 : float32\nstore 1 %1"

const geluKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = gelu %0 : float32\nstore 1 %1"

const biasKernel = "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2"

// erfKernel is x*(erf(x/sqrt 2) + 1)/2 as five public ops.
const erfKernel = "in 0 : float32\nout 1 : float32\nscalar 0 : float32\nscalar 1 : float32\nscalar 2 : float32\n" +
	"%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = mul %0 %1 : float32\n%3 = erf %2 : float32\n" +
	"%4 = scalar 1 : float32\n%5 = add %3 %4 : float32\n%6 = mul %0 %5 : float32\n%7 = scalar 2 : float32\n%8 = mul %6 %7 : float32\nstore 1 %8"

// customKernel is the same with erf by Abramowitz and Stegun 7.1.26 from public ops; both signs are
// computed and one is selected.
var customKernel = func() string {
	b := "in 0 : float32\nout 1 : float32\n"
	for i := range 12 {
		b += "scalar " + strconv.Itoa(i) + " : float32\n"
	}
	b += "%0 = load 0 : float32\n"
	for i := range 12 {
		b += "%" + strconv.Itoa(i+1) + " = scalar " + strconv.Itoa(i) + " : float32\n"
	}
	n := 12
	op := func(text string) string {
		n++
		b += "%" + strconv.Itoa(n) + " = " + text + " : float32\n"
		return "%" + strconv.Itoa(n)
	}
	x := op("mul %0 %1") // x/sqrt 2
	half := func(x string) string {
		a := op("abs " + x)
		d := op("add " + op("mul "+a+" %3") + " %2")
		t := op("recip " + d)
		p := "%8"
		for _, c := range []string{"%7", "%6", "%5", "%4"} {
			p = op("add " + op("mul "+p+" "+t) + " " + c)
		}
		e := op("exp " + op("neg "+op("mul "+x+" "+x)))
		return op("sub %2 " + op("mul "+op("mul "+p+" "+t)+" "+e))
	}
	neg := op("neg " + half(op("neg "+x)))
	pos := half(x)
	n++
	b += "%" + strconv.Itoa(n) + " = gt " + x + " %9 : bool\n"
	e := op("where %" + strconv.Itoa(n) + " " + pos + " " + neg)
	y := op("mul " + op("mul %0 "+op("add "+e+" %2")) + " %10")
	return b + "store 1 " + y
}()

// benchOverCopy runs kernels over (32,512,2048) float32, alternating with a plain copy, and reports
// the median of the ratios, "x-copy".
func benchOverCopy(b *testing.B) {
	d := openDevice(b, runtime.Config{})
	const n = 32 * 512 * 2048
	base := benchLaunch(b, d, parse(b, copyKernel), n)
	run := func(b *testing.B, l *runtime.Launch) time.Duration {
		start := time.Now()
		must(b, runAndWait(d, []runtime.Launch{*l}))
		return time.Since(start)
	}
	for _, c := range []struct{ name, src string }{
		{"relu", reluKernel}, {"gelu", geluKernel}, {"erf", erfKernel}, {"custom", customKernel},
		{"bias", biasKernel},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := benchLaunch(b, d, parse(b, c.src), n)
			var ratios, copies []float64
			for b.Loop() {
				t := run(b, base)
				copies = append(copies, t.Seconds()*1e3)
				ratios = append(ratios, run(b, l).Seconds()/t.Seconds())
			}
			slices.Sort(ratios)
			slices.Sort(copies)
			b.ReportMetric(ratios[len(ratios)/2], "x-copy")
			b.ReportMetric(copies[len(copies)/2], "copy-ms")
		})
	}
}

func benchLaunch(b *testing.B, d *device, k *codegen.Kernel, n int64) *runtime.Launch {
	x := newTrial(k, 1, n)
	if len(k.Operands) == 3 { // the second is a row, broadcast
		x = newTrial(k, 2, n/2048, 2048)
		x.args[1].Stride[0] = 0
	}
	x.fillInputs(rand.New(rand.NewPCG(5, 6)))
	for i := range k.Scalars {
		x.scalars = append(x.scalars, []uint64{0x3f3504f3, 0x3f800000, 0x3ea7ba05, 0x3e827906, 0xbe91a98e, 0x3fb5f0e3, 0xbfba00e3, 0x3f87dc22, 0, 0x3f000000, 0, 0}[i])
	}
	return x.warm(b, d)
}

func runAndWait(d *device, list []runtime.Launch) error {
	return errors.Join(d.Run(list), d.Wait(false))
}

// warm runs a trial once, which compiles and touches pages.
func (x *trial) warm(b *testing.B, d *device) *runtime.Launch {
	l := x.launch(b, d)
	must(b, runAndWait(d, []runtime.Launch{*l}))
	return l
}

// benchLayouts copies 64 MB between different layouts.
func benchLayouts(b *testing.B) {
	d := openDevice(b, runtime.Config{})
	const n = 4096
	for _, c := range []struct {
		name     string
		dims     []int64
		in, out  []int64
		from, to int64
	}{
		{"dense", []int64{n, n}, []int64{n, 1}, []int64{n, 1}, 0, 0},
		{"across", []int64{n, n}, []int64{1, n}, []int64{n, 1}, 0, 0},
		{"across in batches", []int64{64, n, 64}, []int64{64 * n, 1, n}, []int64{64 * n, 64, 1}, 0, 0},
		{"ragged rows", []int64{n, n - 1}, []int64{n, 1}, []int64{n - 1, 1}, 0, 0},
		{"nothing aligned", []int64{n, n - 4}, []int64{n - 1, 1}, []int64{n - 3, 1}, 1, 2},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := newTrial(parse(b, copyKernel), len(c.dims), c.dims...)
			for i, st := range [][]int64{c.in, c.out} {
				copy(x.args[i].Stride[:], st)
				x.args[i].Offset = []int64{c.from, c.to}[i]
				x.args[i].Data = make([]byte, 4*n*n)
			}
			l := x.warm(b, d)
			for b.Loop() {
				must(b, runAndWait(d, []runtime.Launch{*l}))
			}
		})
	}
}

// benchRun times the submission of small plans.
func benchRun(b *testing.B) {
	d := openDevice(b, runtime.Config{})
	l := benchLaunch(b, d, parse(b, reluKernel), 1000)
	for _, n := range []int{1, 15, 20} {
		list := slices.Repeat([]runtime.Launch{*l}, n)
		moved := slices.Clone(list) // the last launch writes other memory each time
		moved[n-1].Args = slices.Clone(l.Args)
		var keep []runtime.Buffer
		b.Run(strconv.Itoa(n)+" launches", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, d.Run(list))
			}
			must(b, d.Wait(false))
		})
		b.Run(strconv.Itoa(n)+" launches, results that move", func(b *testing.B) {
			for b.Loop() {
				out, err := d.Alloc(l.Args[1].Buf.Bytes())
				must(b, err)
				moved[len(moved)-1].Args[1].Buf = out
				if err := d.Run(moved); err != nil {
					b.Fatal(err)
				}
				keep = append(keep, out)
			}
			must(b, d.Wait(false))
			for _, x := range keep {
				d.Free(x)
			}
			keep = keep[:0]
		})
		b.Run(strconv.Itoa(n)+" launches, waited for", func(b *testing.B) {
			for b.Loop() {
				must(b, runAndWait(d, list))
			}
		})
		p := d.Prepare(list, nil)
		if p == nil {
			continue
		}
		defer p.Close()
		for _, wait := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d launches, recorded, waited for %v", n, wait), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					must(b, p.Run())
					if wait {
						must(b, d.Wait(false))
					}
				}
				must(b, d.Wait(false))
			})
		}
		bufs := make([]runtime.Buffer, 12) // more than are remembered
		for i := range bufs {
			var err error
			bufs[i], err = d.Alloc(l.Args[1].Buf.Bytes())
			must(b, err)
			defer d.Free(bufs[i])
		}
		for _, moves := range []int{1, n} { // launches that write another buffer each time
			places := make([]runtime.Place, moves)
			for i := range places {
				places[i] = runtime.Place{Launch: int32(n/2-moves/2) + int32(i), Arg: 1}
			}
			list := slices.Clone(list)
			for _, at := range places {
				list[at.Launch].Args = slices.Clone(list[at.Launch].Args)
				list[at.Launch].Args[1].Buf = bufs[0]
			}
			p := d.Prepare(list, nil)
			if p == nil {
				b.Fatal("not prepared")
			}
			defer p.Close()
			b.Run(fmt.Sprintf("%d launches, prepared, other buffers in %d", n, moves), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					p.Set(places, bufs[i%len(bufs)])
					must(b, p.Run())
				}
				must(b, d.Wait(false))
			})
		}
	}
}
