package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

var updateCode = flag.Bool("update-code", false, "rewrite testdata/code.txt")

// codeHashes has a line for each group of kernels, with a hash of their code.
type codeHashes struct{ strings.Builder }

// group hashes what make passes to add, as one line.
func (h *codeHashes) group(name string, make func(add func(code []byte, about any, err error))) {
	sum := sha256.New()
	n, bytes, refused := 0, 0, 0
	make(func(code []byte, about any, err error) {
		if n++; err != nil {
			refused++
			code, about = nil, "refused"
		}
		bytes += len(code)
		sum.Write(code)
		fmt.Fprintln(sum, about)
	})
	fmt.Fprintf(h, "%s: %d functions, %d refused, %d bytes, %s\n", name, n, refused, bytes, hex.EncodeToString(sum.Sum(nil)[:8]))
}

// fileKernels are the kernels of the golden files of code generators, phase by phase.
func fileKernels(t *testing.T) (list []*codegen.Kernel) {
	files, err := filepath.Glob("../*testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../*/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, more...) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(src), "----\n") {
			from := strings.Index(part, "\nin ")
			if from < 0 {
				continue
			}
			k, err := codegen.Parse(part[from+1:])
			if err != nil {
				continue
			}
			if k, err = codegen.Lower(k); err != nil {
				continue
			}
			for _, p := range codegen.Phases(k, codegen.PhaseOptions{}).Phases {
				list = append(list, p.Kernel)
			}
		}
	}
	if len(list) < 100 {
		t.Fatalf("%d kernels in golden files", len(list))
	}
	return list
}

// classes are random classes of a kernel's operands.
func classes(rng *rand.Rand, k *codegen.Kernel) (list []codegen.AccessClass) {
	for _, o := range k.Operands {
		c := codegen.AccessClass(rng.IntN(3))
		if o.Kind != codegen.Output && rng.IntN(6) == 0 {
			c = codegen.Staged
		}
		if o.Kind == codegen.Output && c == codegen.Splat {
			c = codegen.Contiguous
		}
		list = append(list, c)
	}
	return list
}

const joinText = `in 0 : $d
in 1 : $d
out 2 : $d
%0 = load 0 : $d
%1 = load 1 : $d
%2 = $op %0 %1 : $d
store 2 %2
`

func joinOf(t *testing.T, op ir.Op, dt ir.DType, d ir.Denormals, lower bool) *codegen.Kernel {
	k, err := codegen.Parse(strings.NewReplacer("$d", dt.String(), "$op", op.String()).Replace(joinText))
	if err != nil {
		t.Fatal(err)
	}
	if k.Denormals = d; lower {
		if k, err = codegen.Lower(k); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// imageOf is a kernel from elements to their images or back, here a cast of bits.
func imageOf(t *testing.T, from, to ir.DType) *codegen.Kernel {
	k, err := codegen.Parse(fmt.Sprintf("in 0 : %v\nout 1 : %v\n%%0 = load 0 : %v\n%%1 = bitcast %%0 : %v\nstore 1 %%1\n", from, to, from, to))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// foldsOf are folds by an op on a dtype, the maximum of floats with images.
func foldsOf(t *testing.T, op ir.Op, dt ir.DType, d ir.Denormals) []native.Fold {
	list := []native.Fold{{Join: joinOf(t, op, dt, d, true), Start: 1}}
	if (op == ir.Maximum || op == ir.Minimum) && d == ir.KeepDenormals {
		switch dt {
		case ir.Float32:
			list = append(list, native.Fold{Join: joinOf(t, op, ir.Int32, d, true), Image: imageOf(t, dt, ir.Int32), Element: imageOf(t, ir.Int32, dt), Extremum: op, Start: 7})
		case ir.Float64:
			list = append(list, native.Fold{Join: joinOf(t, op, ir.Int64, d, true), Image: imageOf(t, dt, ir.Int64), Element: imageOf(t, ir.Int64, dt), Extremum: op, Start: 7})
		}
	}
	return list
}

// TestCode compares the code of many kernels, for every target on any machine, with hashes of
// testdata/code.txt. A change that means to change code rewrites them with -update-code.
func TestCode(t *testing.T) {
	var h codeHashes
	fromFiles := fileKernels(t)
	for _, isa := range targets() {
		compiled := func(add func([]byte, any, error), k *codegen.Kernel, v native.Variant) {
			f, err := native.Compile(k, v, isa, false)
			if err != nil {
				add(nil, nil, err)
				return
			}
			add(f.Code, []int{f.Bytes, f.Work, f.Lanes}, nil)
		}
		group := func(name string, make func(add func([]byte, any, error))) { h.group(isa.Name+" "+name, make) }
		group("golden files", func(add func([]byte, any, error)) {
			rng := rand.New(rand.NewPCG(1, 1))
			for _, k := range fromFiles {
				for range 2 {
					compiled(add, k, native.Variant{Class: classes(rng, k), Far: rng.IntN(4) == 0})
				}
				compiled(add, k, native.Variant{Class: make([]codegen.AccessClass, len(k.Operands)), Past: rng.Uint64() & rng.Uint64(), Ahead: rng.Uint64() & rng.Uint64()})
			}
		})
		for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
			for _, dt := range kernels.DTypes {
				group(fmt.Sprintf("every op of %v, %v", dt, d), func(add func([]byte, any, error)) {
					rng := rand.New(rand.NewPCG(uint64(dt), 7))
					every := kernels.EveryOp(dt, nil)
					every.Denormals = d
					for s := range every.Stores {
						k, err := codegen.Lower(alone(every, s))
						if err != nil {
							t.Fatal(err)
						}
						k.Denormals = d
						compiled(add, k, native.Variant{Class: classes(rng, k)})
					}
				})
			}
			group(fmt.Sprintf("random, %v", d), func(add func([]byte, any, error)) {
				for seed := range 240 {
					rng := rand.New(rand.NewPCG(uint64(seed), 3))
					var k *codegen.Kernel
					switch seed % 3 {
					case 0:
						k = kernels.Random(rng, 4+rng.IntN(60), 0)
					case 1:
						k = kernels.RandomLoads(rng, 4+rng.IntN(20), ir.IndexDrop, ir.IndexClamp, 0)
					default:
						k = kernels.RandomWide(rng, 20+rng.IntN(60))
					}
					k.Denormals = d
					k, err := codegen.Lower(k)
					if err != nil {
						t.Fatal(err)
					}
					compiled(add, k, native.Variant{Class: classes(rng, k), Past: rng.Uint64() & rng.Uint64(), Far: rng.IntN(3) == 0, Ahead: rng.Uint64() & rng.Uint64()})
				}
			})
		}
		group("folds", func(add func([]byte, any, error)) {
			for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
				for _, dt := range kernels.DTypes {
					for _, op := range []ir.Op{ir.Add, ir.Mul, ir.Maximum, ir.Minimum, ir.Or, ir.And} {
						if dt == ir.Bool || dt.Size() < 4 || dt.IsFloat() && (op == ir.Or || op == ir.And) {
							continue
						}
						for _, f := range foldsOf(t, op, dt, d) {
							foldCode(t, add, compiled, f, dt, d, isa)
						}
					}
				}
			}
			for _, op := range []ir.Op{ir.Add, ir.Maximum, ir.Minimum, ir.Or, ir.And} {
				if isa.JoinsBytes(op) {
					bytes := native.Fold{Join: joinOf(t, op, ir.Uint8, ir.KeepDenormals, false)}
					joins(add, bytes, isa)
				}
			}
		})
		group("contractions", func(add func([]byte, any, error)) {
			for _, dt := range kernels.DTypes {
				if d, err := native.NewDot(isa, dt, false); err != nil {
					add(nil, nil, err)
				} else {
					code := d.Code
					d.Code = nil
					add(code, *d, nil)
				}
			}
		})
		group("sequences", func(add func([]byte, any, error)) { sequences(t, add, isa) })
		if isa != arm64.NEON {
			group("roof", func(add func([]byte, any, error)) {
				r, err := native.NewRoof(isa)
				add(r.Code, nil, err)
			})
		}
	}
	const path = "testdata/code.txt"
	if *updateCode {
		if err := os.WriteFile(path, []byte(h.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(h.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Errorf("testdata/code.txt:%d:\n%s\nnow\n%s", i+1, line, got[min(i, len(got)-1)])
		}
	}
}

// foldCode adds the code of all functions that a fold has.
func foldCode(t *testing.T, add func([]byte, any, error), compiled func(func([]byte, any, error), *codegen.Kernel, native.Variant), f native.Fold, dt ir.DType, d ir.Denormals, isa *native.ISA) {
	func1 := func(f *native.Func, err error) {
		if err != nil {
			add(nil, nil, err)
			return
		}
		add(f.Code, []int{f.Bytes, f.Work, f.Lanes}, nil)
	}
	func1(native.CompileFold(f.Join, f.Image, f.Element, isa))
	joins(add, f, isa)
	for _, n := range []int{1, 2, 5, 40} { // values of a step
		k := &codegen.Kernel{Operands: []codegen.Operand{{DT: dt}, {DT: dt}}, Denormals: d}
		none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
		k.Body = append(k.Body, ir.Instr{Op: ir.Load, DT: dt, Args: none}, ir.Instr{Op: ir.Load, DT: dt, Args: none, Imm: 1})
		for i := range n {
			in := ir.Instr{Op: []ir.Op{ir.Add, ir.Mul, ir.Sub}[i%3], DT: dt, Args: none}
			in.Args[0], in.Args[1] = ir.Ref(len(k.Body)-1), ir.Ref(len(k.Body)-2)
			k.Body = append(k.Body, in)
		}
		k.Reduces = []codegen.Reduce{{Op: ir.Sum, Value: ir.Ref(len(k.Body) - 1)}, {Op: ir.Sum, Value: ir.Ref(len(k.Body) - 2)}}
		if n%2 == 0 {
			k.Reduces = k.Reduces[:1]
		}
		folds := []native.Fold{f, f}[:len(k.Reduces)]
		for _, v := range []native.Variant{{Folds: folds}, {Folds: folds, Columns: true}, {}} {
			v.Class = make([]codegen.AccessClass, 2)
			compiled(add, k, v)
		}
	}
}

// joins adds the code of joins and folds in memory.
func joins(add func([]byte, any, error), f native.Fold, isa *native.ISA) {
	func1 := func(f *native.Func, err error) {
		if err != nil {
			add(nil, nil, err)
			return
		}
		add(f.Code, []int{f.Bytes, f.Work, f.Lanes}, nil)
	}
	func1(native.CompileRowFold(f, isa))
	for tree := range native.TreeRows + 1 {
		func1(native.CompileRowJoin(f, native.RowJoin{Tree: tree}, isa))
	}
	func1(native.CompileRowJoin(f, native.RowJoin{Onto: true}, isa))
}

// sequences adds random sequences of launches of one op each, on shared buffers.
func sequences(t *testing.T, add func([]byte, any, error), isa *native.ISA) {
	for seed := range 200 {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		var list []native.Launch
		points := 1 + rng.Int64N(40)
		private := make([]bool, 6)
		for i := range private {
			private[i] = rng.IntN(3) == 0
		}
		dts := []ir.DType{ir.Float32, ir.Float64, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64}
		only := dts[rng.IntN(len(dts))]
		for range 1 + rng.IntN(5) {
			dt := only
			if seed%2 == 0 {
				dt = dts[rng.IntN(len(dts))]
			}
			every := kernels.EveryOp(dt, nil)
			k, err := codegen.Lower(alone(every, rng.IntN(len(every.Stores))))
			if err != nil {
				t.Fatal(err)
			}
			k = used(k)
			l := native.Launch{Kernel: k, Dims: []int64{points}}
			for range k.Scalars {
				l.Scalars = append(l.Scalars, kernels.Value(rng, dt))
			}
			for range k.Operands {
				step := int64(1)
				if rng.IntN(5) == 0 {
					step = 0
				}
				l.Args = append(l.Args, native.Arg{Buffer: rng.IntN(len(private)), Offset: 64 * rng.Int64N(2), Stride: []int64{step}})
			}
			list = append(list, l)
		}
		f, err := native.CompileSequence(list, private, isa, false)
		if err != nil {
			add(nil, nil, err)
			continue
		}
		add(f.Code, []int{f.Bytes, f.Work}, nil)
	}
}

// targets are all targets; their code is made on any machine.
func targets() []*native.ISA { return []*native.ISA{amd64.AVX2, amd64.AVX512, arm64.NEON} }

// used drops the operands that a kernel neither reads nor writes.
func used(k *codegen.Kernel) *codegen.Kernel {
	out := &codegen.Kernel{Scalars: k.Scalars, Denormals: k.Denormals}
	at := make([]int, len(k.Operands))
	for i, o := range k.Operands {
		if o.Kind == codegen.Output || reads(k, i) {
			at[i] = len(out.Operands)
			out.Operands = append(out.Operands, o)
		}
	}
	for _, in := range k.Body {
		if in.Op == ir.Load || in.Op == ir.IndexLo || in.Op == ir.IndexHi {
			in.Imm = uint64(at[in.Imm])
		}
		out.Body = append(out.Body, in)
	}
	for _, s := range k.Stores {
		out.Stores = append(out.Stores, codegen.Store{Operand: at[s.Operand], Value: s.Value})
	}
	return out
}
