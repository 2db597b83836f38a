package arm64

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/testing/asmtest"
)

var (
	comment   = regexp.MustCompile(`\s+//.*$`)
	zeroShift = regexp.MustCompile(`, (lsl )?#0$`)
	target    = regexp.MustCompile(`^(b|b\.\w+|adr x\d+,) ?(0x[0-9a-f]+|[LC]-?\d+)$`)
)

// plain removes differences between assemblers, and the targets of jumps.
func plain(s string) string {
	s = comment.ReplaceAllString(s, "")
	s = regexp.MustCompile(`[ \t]+`).ReplaceAllString(s, " ")
	s = target.ReplaceAllString(s, "$1")
	if !strings.HasPrefix(s, "mov") && !strings.HasPrefix(s, "cm") && !strings.HasPrefix(s, "adds") && !strings.HasPrefix(s, "subs") {
		s = zeroShift.ReplaceAllString(s, "")
	}
	return asmtest.Decimal(s)
}

// TestNEONEncoding disassembles every entry of the table and every instruction on general
// registers, with random registers, memory and constants, by another program.
func TestNEONEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	a := NEON.New(&native.Buffer{ISA: NEON, Lines: &native.Listing{}}, nil).(*machine)
	vec := func() uint8 { return uint8(rng.IntN(32)) }
	gen := func() native.GPR { return native.GPR(rng.IntN(16)) }
	place := func() native.Mem {
		m := asmtest.Mem(rng)
		if rng.IntN(8) == 0 {
			m = native.Mem{Base: native.NoReg, Index: native.NoReg, Scale: 1, Disp: int32(rng.IntN(64) * 4)}
		} else if rng.IntN(4) == 0 {
			m.Disp = -m.Disp
		}
		return m
	}
	for o := range numRows {
		if o == 0 {
			continue
		}
		info := table[o]
		if info.name == "" {
			t.Errorf("row %d is empty", o)
		}
		for range 8 {
			most := 32
			if info.shape == shapeLane {
				most = 4
			}
			a.neon(o, vec(), vec(), vec(), 1+rng.IntN(most-1))
			if info.shape == shapeLane {
				a.neon(o, vec(), vec(), vec(), 0)
				most = 1
			}
			if info.pair {
				a.neon(o|wide, vec(), vec(), vec(), 1+rng.IntN(2*most-1))
			}
		}
	}
	imm := func() int { return []int{0, 1, -1, 4095, -4095, 4096, -4096, 1 << 20, -(1 << 30), 77}[rng.IntN(10)] }
	here := a.NewLabel()
	a.Labels[here] = 0
	for range 60 {
		a.Load(gen(), place())
		a.Load32(gen(), place())
		a.Store(place(), gen())
		a.Copy(gen(), gen())
		a.Lea(gen(), place())
		a.LeaLabel(gen(), here)
		a.Clear(gen())
		a.Set(gen(), rng.Uint32()>>rng.IntN(32))
		a.setConst(gen(), int64(rng.Uint64())>>rng.IntN(64))
		a.Jump(here)
		a.JumpTo(place())
		a.Ret()
		for c := range conds {
			a.JumpIf(c, here)
		}
		for _, size := range []int{1, 2, 4, 8} {
			a.StoreSize(size, place(), gen())
			a.LoadSize(size, true, gen(), place())
			a.LoadSize(size, false, gen(), place())
		}
		for _, size := range []int{1, 2, 4, 8, 16} {
			a.moveVec(vec(), size, place(), true)
			a.moveVec(vec(), size, place(), false)
		}
		for o := range arithOps {
			a.Op(o, gen(), native.OfGPR(gen()))
			a.Op(o, gen(), native.InMem(place()))
			a.OpTo(o, place(), gen())
			a.OpImm(o, native.OfGPR(gen()), imm())
		}
		a.OpImm(native.Cmp, native.InMem(place()), imm())
		a.OpImm(native.Sub, native.InMem(place()), rng.IntN(4096))
		a.Imul(gen(), native.OfGPR(gen()))
		a.Imul(gen(), native.InMem(place()))
		for _, kind := range []uint8{native.Shl, native.Shr, native.Sar} {
			a.Shift(kind, true, gen(), 1+rng.IntN(63))
			a.Shift(kind, false, gen(), 1+rng.IntN(31))
		}
		a.divide(rng.IntN(2) == 0, gen(), gen(), gen())
		a.lessProduct(gen(), gen(), gen(), gen())
		a.copyReg(vec(), vec())
		a.zero(vec())
		a.dup(vec(), 4, gen())
		a.dup(vec(), 8, gen())
		a.dupLoad(vec(), 4, place())
		a.dupLoad(vec(), 8, place())
		a.loadLane(vec(), 4, rng.IntN(4), gen())
		a.loadLane(vec(), 8, rng.IntN(2), gen())
		a.lane(vec(), 4, rng.IntN(4), gen(), false)
		a.lane(vec(), 8, rng.IntN(2), gen(), false)
		for _, size := range []int{1, 2, 4, 8, 16} {
			a.loadIndexed(vec(), size, gen(), gen())
		}
		a.ins(vec(), rng.IntN(4), gen())
		a.Negate(gen())
		a.largest(gen(), vec())
		a.least(gen(), vec())
		a.moveOut(gen(), vec())
		a.toFloat32(rng.IntN(2) == 0, vec(), gen())
	}
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	got := asmtest.Disassemble(t, a.Buf, []string{"aarch64-linux-gnu-objdump", "objdump"}, "-m", "aarch64")
	want := a.Lines.Lines
	for i := range want {
		w := plain(want[i].Text)
		if i >= len(got) || plain(got[i]) != w {
			t.Fatalf("line %d: wrote %q, objdump reads %q", i, w, plain(got[i]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d instructions, objdump reads %d", len(want), len(got))
	}
}

// TestTooFar checks that a jump farther than an instruction can encode is an error.
func TestTooFar(t *testing.T) {
	for _, words := range []int{1 << 17, 1<<18 - 1, 1 << 18} {
		a := NEON.New(&native.Buffer{ISA: NEON}, nil).(*machine)
		end := a.NewLabel()
		a.JumpIf(native.Equal, end)
		for range words - 1 {
			a.Ret()
		}
		a.Place(end)
		if _, err := a.Finish(a); (err != nil) != (words == 1<<18) {
			t.Errorf("over %d instructions: %v", words, err)
		}
	}
}
