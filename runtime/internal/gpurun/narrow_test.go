package gpurun

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestNarrowChosen: the size of elements in memory depends on adapter, language and option. Shaders
// declare it, the description and the scope of stored entries have it, and a launch counts its bytes
// by it.
func TestNarrowChosen(t *testing.T) {
	scopes := map[string]string{}
	for _, c := range []struct {
		name              string
		store16, store8   bool
		lang              *shader.Dialect
		mode              runtime.NarrowMode
		halves, bytes     int // bytes of an int16 and of a uint8
		element, describe string
	}{
		{"both", true, true, spirv.Dialect, runtime.NarrowOn, 2, 1, "vec4u16", "8 and 16 bits in their own size"},
		{"halves", true, false, spirv.Dialect, runtime.NarrowOn, 2, 4, "vec4u16", "16 bits in their own size"},
		{"bytes", false, true, spirv.Dialect, runtime.NarrowOn, 4, 1, "vec4i32", "of 8 bits in their own size"},
		{"neither", false, false, spirv.Dialect, runtime.NarrowOn, 4, 4, "vec4i32", ""},
		{"turned off", true, true, spirv.Dialect, runtime.NarrowOff, 4, 4, "vec4i32", ""},
		{"a language without", true, true, wgsl.Dialect, runtime.NarrowOn, 4, 4, "vec4<i32>", ""},
	} {
		f := newFake()
		f.info.Store16, f.info.Store8 = c.store16, c.store8
		d := New("fake", f, c.lang, runtime.Config{Narrow: c.mode})
		if h, b := d.caps.ElemSize[ir.Int16], d.caps.ElemSize[ir.Uint8]; h != c.halves || b != c.bytes {
			t.Errorf("%s: elements of %d and %d bytes, want %d and %d", c.name, h, b, c.halves, c.bytes)
		}
		if d.caps.ElemSize[ir.Float16] != c.halves || d.caps.ElemSize[ir.BFloat16] != c.halves || d.caps.ElemSize[ir.Bool] != c.bytes || d.caps.ElemSize[ir.Float32] != 4 {
			t.Errorf("%s: %v", c.name, d.caps.ElemSize)
		}
		const n = 1000
		l := launch(t, d, strings.ReplaceAll(copyKernel, "float32", "int16"), 1, n)
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		list := d.Source(l.Prog)
		if len(list) != 1 || strings.Count(list[0].Source, c.element) < 2 || strings.Contains(list[0].Source, "vec4u16") != (c.halves == 2) {
			t.Errorf("%s: no %s in %v", c.name, c.element, list)
		}
		if s := d.Stats(); s.BytesRead != int64(n*c.halves) || s.BytesWritten != int64(n*c.halves) {
			t.Errorf("%s: %d bytes read, %d written", c.name, s.BytesRead, s.BytesWritten)
		}
		if says := strings.Contains(d.caps.Description, "own size"); says != (c.describe != "") || !strings.Contains(d.caps.Description, c.describe) {
			t.Errorf("%s: described as %q", c.name, d.caps.Description)
		}
		if c.lang == spirv.Dialect {
			scopes[d.caps.Scope()] = c.name
		}
		_ = d.Close()
	}
	if len(scopes) != 4 { // without and turned off are one
		t.Errorf("stored entries have the scopes %v", scopes)
	}
}

// TestPack: elements become device elements of their own size or words, and come back.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if !shader.DTypes.Has(dt) {
			continue
		}
		size := dt.Size()
		const n = 100
		src := make([]byte, n*size)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		for _, elem := range []int{size, wordSize} {
			dst, back := make([]byte, n*elem), make([]byte, n*size)
			pack(dst, dt, int64(elem), src)
			unpack(back, dt, int64(elem), dst)
			want := bytes.Clone(src)
			for i := range want {
				if dt == ir.Bool {
					want[i] = min(want[i], 1)
				}
			}
			if !bytes.Equal(back, want) {
				t.Errorf("%v in %d bytes: % x came back as % x", dt, elem, want[:8], back[:8])
			}
			for i := range n {
				bits := ir.LoadBits(dt, want[i*size:])
				if elem == wordSize && ir.LoadBits(ir.Uint32, dst[i*elem:]) != uint64(shader.Word(dt, bits)) {
					t.Errorf("%v: the word of %#x is % x", dt, bits, dst[i*elem:][:elem])
				}
			}
		}
	}
}

// TestNarrowShared: operands whose elements have different sizes have bindings of their own, unless
// the buffer is written.
func TestNarrowShared(t *testing.T) {
	f := newFake()
	f.info.Store16, f.info.Store8 = true, true
	d := New("fake", f, spirv.Dialect, runtime.Config{})
	defer d.Close()
	const text = "in 0 : int32\nin 1 : int16\nout 2 : int32\n%0 = load 0 : int32\n%1 = load 1 : int16\n%2 = convert %1 : int32\n%3 = add %0 %2 : int32\nstore 2 %3"
	l := launch(t, d, text, 1, 100)
	l.Args[1].Buf = l.Args[0].Buf
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Fatal(err)
	}
	if n := len(f.submitted[0][0].Bind); n != 4 { // and the words
		t.Errorf("%d bindings", n)
	}
	l.Args[2].Buf = l.Args[0].Buf
	if err := d.Run([]runtime.Launch{*l}); err == nil || !strings.Contains(err.Error(), "elements of") {
		t.Errorf("a written buffer: %v", err)
	}
}
