package native

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// disassembleA64 disassembles arm64 code with objdump.
func disassembleA64(t *testing.T, code []byte) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-D", "-b", "binary", "-m", "aarch64", "--no-show-raw-insn", path}
	var out []byte
	err := exec.ErrNotFound
	for _, name := range []string{"aarch64-linux-gnu-objdump", "objdump"} {
		if out, err = exec.Command(name, args...).Output(); err == nil {
			break
		}
	}
	if err != nil && os.Getenv("MILLRACE_REQUIRE") != "" {
		t.Fatalf("objdump: %v", err)
	}
	if err != nil {
		t.Skipf("needs objdump for aarch64 (Debian: binutils-aarch64-linux-gnu): %v", err)
	}
	var list []string
	for _, l := range strings.Split(string(out), "\n") {
		if m := regexp.MustCompile(`^\s*[0-9a-f]+:\s+(.*?)\s*$`).FindStringSubmatch(l); m != nil {
			list = append(list, plainA64(m[1]))
		}
	}
	return list
}

var (
	commentA64 = regexp.MustCompile(`\s+//.*$`)
	zeroShift  = regexp.MustCompile(`, (lsl )?#0$`)
	targetA64  = regexp.MustCompile(`^(b|b\.\w+|adr x\d+,) ?(0x[0-9a-f]+|[LC]-?\d+)$`)
)

// plainA64 removes differences between assemblers, and the targets of jumps.
func plainA64(s string) string {
	s = commentA64.ReplaceAllString(s, "")
	s = regexp.MustCompile(`[ \t]+`).ReplaceAllString(s, " ")
	s = targetA64.ReplaceAllString(s, "$1")
	if !strings.HasPrefix(s, "mov") && !strings.HasPrefix(s, "cm") && !strings.HasPrefix(s, "adds") && !strings.HasPrefix(s, "subs") {
		s = zeroShift.ReplaceAllString(s, "")
	}
	return numbers.ReplaceAllStringFunc(s, decimal)
}

// TestNEONEncoding disassembles every entry of the table and every instruction on general
// registers, with random registers, memory and constants, by another program.
func TestNEONEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	a := &asm{isa: NEON, lines: &listing{}}
	vec := func() uint8 { return uint8(rng.IntN(32)) }
	gen := func() gpr { return gpr(rng.IntN(16)) }
	place := func() mem {
		m := randomMem(rng)
		if rng.IntN(8) == 0 {
			m = mem{base: noReg, index: noReg, scale: 1, disp: int32(rng.IntN(64) * 4)}
		} else if rng.IntN(4) == 0 {
			m.disp = -m.disp
		}
		return m
	}
	for o := range numNEONRows {
		if o == 0 {
			continue
		}
		info := neonTable[o]
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
	here := a.newLabel()
	a.labels[here] = 0
	for range 60 {
		a.load(gen(), place())
		a.load32(gen(), place())
		a.store(place(), gen())
		a.copy(gen(), gen())
		a.lea(gen(), place())
		a.leaLabel(gen(), here)
		a.clear(gen())
		a.set(gen(), rng.Uint32()>>rng.IntN(32))
		a.constA64(gen(), int64(rng.Uint64())>>rng.IntN(64))
		a.jump(here)
		a.jumpTo(place())
		a.ret()
		for c := range condsA64 {
			a.jumpIf(c, here)
		}
		for _, size := range []int{1, 2, 4, 8} {
			a.storeSize(size, place(), gen())
			a.loadSize(size, true, gen(), place())
			a.loadSize(size, false, gen(), place())
		}
		for _, size := range []int{1, 2, 4, 8, 16} {
			a.moveVec(vec(), size, place(), true)
			a.moveVec(vec(), size, place(), false)
		}
		for o := range arithA64 {
			a.op(o, gen(), ofGPR(gen()))
			a.op(o, gen(), inMem(place()))
			a.opTo(o, place(), gen())
			a.opImm(o, ofGPR(gen()), imm())
		}
		a.opImm(cmp, inMem(place()), imm())
		a.opImm(sub, inMem(place()), rng.IntN(4096))
		a.imul(gen(), ofGPR(gen()))
		a.imul(gen(), inMem(place()))
		for _, kind := range []uint8{shl, shr, sar} {
			a.shift(kind, true, gen(), 1+rng.IntN(63))
			a.shift(kind, false, gen(), 1+rng.IntN(31))
		}
		a.divideA64(rng.IntN(2) == 0, gen(), gen(), gen())
		a.lessProduct(gen(), gen(), gen(), gen())
		a.movA64(vec(), vec())
		a.zeroA64(vec())
		a.dup(vec(), 4, gen())
		a.dup(vec(), 8, gen())
		a.dupLoad(vec(), 4, place())
		a.dupLoad(vec(), 8, place())
		a.laneLoadA64(vec(), 4, rng.IntN(4), gen())
		a.laneLoadA64(vec(), 8, rng.IntN(2), gen())
		a.laneA64(vec(), 4, rng.IntN(4), gen(), false)
		a.laneA64(vec(), 8, rng.IntN(2), gen(), false)
		for _, size := range []int{1, 2, 4, 8, 16} {
			a.loadIndexed(vec(), size, gen(), gen())
		}
		a.ins(vec(), rng.IntN(4), gen())
		a.negate(gen())
		a.largest(gen(), vec())
		a.least(gen(), vec())
		a.moveOut(gen(), vec())
		a.toFloat32(rng.IntN(2) == 0, vec(), gen())
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	got := disassembleA64(t, a.buf)
	want := a.lines.lines
	for i := range want {
		w := plainA64(want[i].text)
		if i >= len(got) || got[i] != w {
			t.Fatalf("line %d: wrote %q, objdump reads %q", i, w, got[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d instructions, objdump reads %d", len(want), len(got))
	}
}

// TestTooFar checks that a jump farther than an instruction can encode is an error.
func TestTooFar(t *testing.T) {
	for _, words := range []int{1 << 17, 1<<18 - 1, 1 << 18} {
		a := &asm{isa: NEON}
		end := a.newLabel()
		a.jumpIf(equal, end)
		for range words - 1 {
			a.ret()
		}
		a.place(end)
		if _, err := a.finish(); (err != nil) != (words == 1<<18) {
			t.Errorf("over %d instructions: %v", words, err)
		}
	}
}
