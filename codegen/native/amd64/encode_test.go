package amd64

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/testing/asmtest"
)

var (
	sizes   = regexp.MustCompile(`(XMMWORD|YMMWORD|ZMMWORD|QWORD|DWORD|WORD|BYTE) (PTR|BCST) `)
	comment = regexp.MustCompile(`\s+#.*$`)
)

// plain removes differences between assemblers.
func plain(s string) string {
	s = strings.TrimPrefix(comment.ReplaceAllString(s, ""), "{evex} ")
	s = sizes.ReplaceAllString(s, "")
	s = regexp.MustCompile(`\{1to\d+\}`).ReplaceAllString(s, "")
	s = strings.NewReplacer("\t", " ", "+0x0]", "]", "+riz*1", "").Replace(s)
	s = regexp.MustCompile(` +`).ReplaceAllString(s, " ")
	for long, short := range map[string]string{"vmovq": "vmovq", "*1": "*1"} {
		s = strings.ReplaceAll(s, long, short)
	}
	// Comparisons have names for their predicates.
	for i, p := range []string{"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord"} {
		for _, e := range []string{"ps", "pd", "d", "ud", "q", "uq"} {
			pre := "vcmp"
			if e != "ps" && e != "pd" {
				pre = "vpcmp"
			}
			if strings.HasPrefix(s, pre+p+e+" ") {
				s = pre + e + s[len(pre+p+e):] + fmt.Sprintf(",%#x", i)
			}
		}
	}
	return asmtest.Decimal(s)
}

// randomReg chooses a register of a kind, but not the stack pointer.
func randomReg(rng *rand.Rand, kind uint8, isa *native.ISA) uint8 {
	switch kind {
	case mask:
		return uint8(rng.IntN(8))
	case gpr32, gpr64:
		return uint8(rng.IntN(16))
	}
	return uint8(rng.IntN(isa.Regs))
}

// TestEncoding disassembles every entry of the table, with random registers and memory, by another
// program.
func TestEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, isa := range ISAs {
		a := isa.New(&native.Buffer{ISA: isa, Lines: &native.Listing{}}, nil).(*machine)
		for o := native.OpNone + 1; o < numVecOps; o++ {
			info := &opTable[o]
			if info.name == "" {
				t.Errorf("row %d is empty", o)
			}
			if info.only == evexOnly && !isa.Masks || info.only == vexOnly && isa.Masks && info.reg != mask && info.RM != mask {
				continue
			}
			for range 24 {
				a.randomOp(rng, o)
			}
		}
		for range 24 {
			a.Prefetch(asmtest.Mem(rng), false)
			a.Prefetch(asmtest.Mem(rng), true)
		}
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		got := asmtest.Disassemble(t, a.Buf, []string{"objdump"}, "-m", "i386:x86-64", "-M", "intel")
		want := a.Lines.Lines
		for i := range want {
			w := plain(want[i].Text)
			if i >= len(got) || plain(got[i]) != w {
				t.Fatalf("%s: line %d: wrote %q, objdump reads %q", isa.Name, i, w, plain(got[i]))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d instructions, objdump reads %d", len(want), len(got))
		}
	}
}

func (a *machine) randomOp(rng *rand.Rand, o native.Op) {
	info := &opTable[o]
	size := a.ISA.Bytes >> rng.IntN(2)
	switch {
	case info.half > 0 || info.rhalf > 0:
		size = a.ISA.Bytes
	case o == vbroadcastsd || info.scalar == 16 || o == vpermq:
		size = a.ISA.Bytes
	case info.scalar > 0 && info.code != 0x18 && info.code != 0x7c || info.reg == gpr32 || info.reg == mask && info.RM != vec:
		size = 16
	}
	x := args{reg: randomReg(rng, info.reg, a.ISA), v: randomReg(rng, vec, a.ISA), imm: native.NoImm}
	if info.reg == mask && info.RM != vec {
		x.v = uint8(rng.IntN(8))
	}
	memory := rng.IntN(2) == 0
	switch {
	case info.RM == mask && info.scalar == 0, info.RM == gpr32 && info.scalar == 0, o == vpbroadcastdR, o == vpbroadcastqR, info.reg == gpr32, info.form == formVMI && !a.evex:
		memory = false
	case o == vmovntps, o == vmaskmovps, o == vmaskmovpd, o == vmaskmovpsTo, o == vmaskmovpdTo, o == vmovss, o == vmovssTo, o == vmovsd, o == vmovsdTo, o == kmovwTo:
		memory = true
	}
	// Between registers another entry has the same text.
	switch o {
	case vmovupsTo, vmovupdTo, vmovqTo:
		memory = true
	}
	if x.RM = native.InReg(randomReg(rng, info.RM, a.ISA)); memory {
		x.RM = native.InMem(asmtest.Mem(rng))
		if a.evex && info.elem > 0 && rng.IntN(2) == 0 && o != vcmpps {
			x.RM.Step = info.elem
		}
	}
	switch info.form {
	case formRVMI, formRMI, formMRI, formVMI:
		x.imm = int16(rng.IntN(8))
	case formRVM4:
		x.k = uint8(rng.IntN(16))
	}
	if a.evex && info.only != vexOnly && info.reg == vec && info.scalar == 0 && rng.IntN(3) == 0 && info.RM == vec && o != vmovntps {
		x.k = uint8(1 + rng.IntN(7))
		x.zero = info.form != formMR && info.form != formMRI && rng.IntN(2) == 0
	}
	a.vector(o, size, x)
}
