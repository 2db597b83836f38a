package native

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// disassemble disassembles code with objdump.
func disassemble(t *testing.T, code []byte) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", path).Output()
	if err != nil && os.Getenv("MILLRACE_REQUIRE") != "" {
		t.Fatalf("objdump: %v", err)
	}
	if err != nil {
		t.Skipf("needs objdump (Debian: binutils): %v", err)
	}
	var list []string
	for _, l := range strings.Split(string(out), "\n") {
		if m := regexp.MustCompile(`^\s*[0-9a-f]+:\s+(.*?)\s*$`).FindStringSubmatch(l); m != nil {
			list = append(list, plain(m[1]))
		}
	}
	return list
}

var (
	sizes   = regexp.MustCompile(`(XMMWORD|YMMWORD|ZMMWORD|QWORD|DWORD|WORD|BYTE) (PTR|BCST) `)
	comment = regexp.MustCompile(`\s+#.*$`)
	numbers = regexp.MustCompile(`0x[0-9a-f]+|\b[0-9]+\b`)
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
	return numbers.ReplaceAllStringFunc(s, decimal)
}

func decimal(n string) string {
	x, _ := strconv.ParseUint(n, 0, 64)
	return fmt.Sprint(int64(x))
}

// randomReg chooses a register of a kind, but not the stack pointer.
func randomReg(rng *rand.Rand, kind uint8, isa *ISA) uint8 {
	switch kind {
	case mask:
		return uint8(rng.IntN(8))
	case gpr32, gpr64:
		return uint8(rng.IntN(16))
	}
	return uint8(rng.IntN(isa.Regs))
}

func randomMem(rng *rand.Rand) mem {
	m := mem{base: gpr(rng.IntN(16)), index: noReg, scale: 1}
	switch rng.IntN(4) {
	case 0:
		m.disp = int32(rng.IntN(16) * 64)
	case 1:
		m.disp = int32(rng.IntN(1<<12)) - 1<<11
	case 2:
		m.disp = int32(rng.IntN(1 << 20))
	}
	if rng.IntN(2) == 0 {
		m.index, m.scale = gpr(rng.IntN(16)), 1<<rng.IntN(4)
		if m.index == rsp {
			m.index = rax
		}
	}
	return m
}

// TestEncoding disassembles every entry of the table, with random registers and memory, by another
// program.
func TestEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, isa := range ISAs {
		a := &asm{isa: isa, lines: &listing{}}
		for o := opNone + 1; o < numVecOps; o++ {
			info := &opTable[o]
			if info.name == "" {
				t.Errorf("row %d is empty", o)
			}
			if info.only == evexOnly && !isa.EVEX || info.only == vexOnly && isa.EVEX && info.reg != mask && info.rm != mask {
				continue
			}
			for range 24 {
				a.randomOp(rng, o)
			}
		}
		for range 24 {
			a.prefetch(randomMem(rng))
			a.ask(randomMem(rng))
		}
		if a.err != nil {
			t.Fatal(a.err)
		}
		got := disassemble(t, a.buf)
		want := a.lines.lines
		for i := range want {
			w := plain(want[i].text)
			if i >= len(got) || got[i] != w {
				t.Fatalf("%s: line %d: wrote %q, objdump reads %q", isa.Name, i, w, got[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d instructions, objdump reads %d", len(want), len(got))
		}
	}
}

func (a *asm) randomOp(rng *rand.Rand, o op) {
	info := &opTable[o]
	size := a.isa.Bytes >> rng.IntN(2)
	switch {
	case info.half > 0 || info.rhalf > 0:
		size = a.isa.Bytes
	case o == vbroadcastsd || info.scalar == 16 || o == vpermq:
		size = a.isa.Bytes
	case info.scalar > 0 && info.code != 0x18 && info.code != 0x7c || info.reg == gpr32 || info.reg == mask && info.rm != vec:
		size = 16
	}
	x := args{reg: randomReg(rng, info.reg, a.isa), v: randomReg(rng, vec, a.isa), imm: noImm}
	if info.reg == mask && info.rm != vec {
		x.v = uint8(rng.IntN(8))
	}
	memory := rng.IntN(2) == 0
	switch {
	case info.rm == mask && info.scalar == 0, info.rm == gpr32 && info.scalar == 0, o == vpbroadcastdR, o == vpbroadcastqR, info.reg == gpr32, info.form == formVMI && !a.isa.EVEX:
		memory = false
	case o == vmovntps, o == vmaskmovps, o == vmaskmovpd, o == vmaskmovpsTo, o == vmaskmovpdTo, o == vmovss, o == vmovssTo, o == vmovsd, o == vmovsdTo, o == kmovwTo:
		memory = true
	}
	// Between registers another entry has the same text.
	switch o {
	case vmovupsTo, vmovupdTo, vmovqTo:
		memory = true
	}
	if x.rm = inReg(randomReg(rng, info.rm, a.isa)); memory {
		x.rm = inMem(randomMem(rng))
		if a.isa.EVEX && info.elem > 0 && rng.IntN(2) == 0 && o != vcmpps {
			x.rm.step = info.elem
		}
	}
	switch info.form {
	case formRVMI, formRMI, formMRI, formVMI:
		x.imm = int16(rng.IntN(8))
	case formRVM4:
		x.k = uint8(rng.IntN(16))
	}
	if a.isa.EVEX && info.only != vexOnly && info.reg == vec && info.scalar == 0 && rng.IntN(3) == 0 && info.rm == vec && o != vmovntps {
		x.k = uint8(1 + rng.IntN(7))
		x.zero = info.form != formMR && info.form != formMRI && rng.IntN(2) == 0
	}
	a.vector(o, size, x)
}
