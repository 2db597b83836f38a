package cpu

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// BenchmarkRows times row kernels over 32×512×2048 elements, along each axis; the time of copying
// or reading the same bytes is the lower bound.
func BenchmarkRows(b *testing.B) {
	dims := [3]int64{32, 512, 2048}
	const n = 32 * 512 * 2048
	d := openTest(b, runtime.Config{Tier: 1, Threads: benchThreads()})
	alloc := func(n int64) runtime.Buffer {
		buf, err := d.Alloc(n * 4)
		if err != nil {
			b.Fatal(err)
		}
		return buf
	}
	in, out, row := alloc(n), alloc(n), alloc(n)
	data := make([]byte, n*4)
	for j := range n {
		x := math.Float32bits(float32(j*7919%2048)/256 - 4)
		data[4*j], data[4*j+1], data[4*j+2], data[4*j+3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	}
	for _, buf := range []runtime.Buffer{in, out, row} {
		if err := d.Write(buf, ir.Float32, 0, data); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			if err := d.transfer(out.(*memory.Buffer), ir.Float32, 0, bytesOf(in.(*memory.Buffer)), true); err != nil {
				b.Fatal(err)
			}
		}
	})
	byName := map[string]*codegen.Kernel{
		"softmax": rowKernel(b, rowtext.Softmax), "norm": rowKernel(b, rowtext.Norm),
		"sum": rowKernel(b, "\nin 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1\n"),
		"max": rowKernel(b, "\nin 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = max %0 : float32\nstore 1 %1\n"),
	}
	for _, name := range []string{"sum", "max", "softmax", "norm"} {
		for axis := range 4 { // 3: all axes
			if axis == 3 && name != "sum" && name != "max" {
				continue
			}
			b.Run(name+[]string{"/first", "/middle", "/last", "/all"}[axis], func(b *testing.B) {
				k := byName[name]
				p, err := d.Build(k)
				if err != nil {
					b.Fatal(err)
				}
				l := runtime.Launch{Prog: p, Args: make([]runtime.Access, len(k.Operands))}
				for i, o := range k.Operands {
					l.Args[i].Buf = in
					if o.Kind == codegen.Output {
						l.Args[i].Buf = out
					}
					if o.Row {
						l.Args[i].Buf = row
					}
				}
				for range k.Scalars {
					l.Scalars = append(l.Scalars, uint64(math.Float32bits(float32(dims[min(axis, 2)]))))
				}
				kept := int64(1)
				add := func(d int) {
					l.Dims[l.Rank] = dims[d]
					for i, o := range k.Operands {
						stride := int64(1)
						for _, n := range dims[d+1:] {
							stride *= n
						}
						if name == "norm" && i == 2 && d != axis {
							stride = 0 // weights
						}
						if o.Row {
							stride = 0
						}
						l.Args[i].Stride[l.Rank] = stride
					}
					l.Rank++
				}
				for d := range dims {
					if axis < 3 && d != axis {
						add(d)
						kept *= dims[d]
					}
				}
				l.Kept = l.Rank
				for d := l.Kept - 1; d >= 0; d-- {
					stride := int64(1)
					for _, n := range l.Dims[d+1 : l.Kept] {
						stride *= n
					}
					for i, o := range k.Operands {
						if o.Row {
							l.Args[i].Stride[d] = stride
						}
					}
				}
				for d := range dims {
					if axis == 3 || d == axis {
						add(d)
					}
				}
				outputs := []int{len(k.Operands) - 1}
				l.Collapse(outputs)
				list := []runtime.Launch{l}
				if err := d.Run(list); err != nil {
					b.Fatal(err)
				}
				least := time.Duration(math.MaxInt64) // a minimum, because other processes use the machine, too
				for b.Loop() {
					begin := time.Now()
					if err := d.Run(list); err != nil {
						b.Fatal(err)
					}
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(least.Seconds()*1e3, "ms-least")
			})
		}
	}
}

func benchThreads() int {
	if os.Getenv("THREADS") == "1" {
		return 1
	}
	return 2
}

// BenchmarkSmallRows times row kernels on few elements: the time of a launch counts.
func BenchmarkSmallRows(b *testing.B) {
	d := openTest(b, runtime.Config{Tier: 1, Threads: 1})
	for _, c := range []struct {
		name, text string
		dims       []int64
		columns    bool
	}{
		{"softmax", rowtext.Softmax, []int64{8, 64}, false}, {"softmax columns", rowtext.Softmax, []int64{8, 64}, true},
		{"norm", rowtext.Norm, []int64{40, 100}, false}, {"scan", rowtext.Scan, []int64{10, 300}, false},
		{"short", rowtext.Softmax, []int64{1000, 5}, false}, {"columns", rowtext.Softmax, []int64{300, 200}, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := rowKernel(b, c.text)
			h := kernels.NewLaunch(rand.New(rand.NewPCG(1, 1)), k, c.dims, 1, kernels.Dense)
			for i := range h.Args {
				if c.columns {
					transpose(h, i, 1)
				}
			}
			bound(b, d, k, h, func(l *runtime.Launch) {
				list := []runtime.Launch{*l}
				for b.Loop() {
					if err := d.Run(list); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
