//go:build gc

package machine

// cpuid and xgetbv are the instructions. golang.org/x/sys/cpu would be another module for every
// importer to download, and internal/cpu is not accessible.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() (lo uint32)

// Bits of leaf 1 (ECX), leaf 7 (EBX) and XCR0.
const (
	hasFMA     = 1 << 12
	hasOSXSAVE = 1 << 27
	hasAVX     = 1 << 28
	hasF16C    = 1 << 29

	hasBMI1 = 1 << 3
	hasAVX2 = 1 << 5
	hasBMI2 = 1 << 8
	has512F = 1 << 16
	has512D = 1 << 17
	has512B = 1 << 30
	has512V = 1 << 31

	savesYMM = 0x06 // the lower and upper halves
	savesZMM = 0xE0 // masks, upper halves, registers from 16
)

func processor() ISA {
	most, _, _, _ := cpuid(0, 0)
	if most < 7 {
		return None
	}
	_, _, one, _ := cpuid(1, 0)
	if one&hasOSXSAVE == 0 {
		return None // and no XGETBV
	}
	_, seven, _, _ := cpuid(7, 0)
	return isaOf(one, seven, xgetbv())
}

// isaOf returns the highest level with all its parts: those of the processor, and those that the
// system saves.
func isaOf(one, seven, saves uint32) ISA {
	for _, need := range []struct {
		isa               ISA
		one, seven, saves uint32
	}{
		{AVX512, hasFMA | hasAVX | hasF16C, hasBMI1 | hasBMI2 | hasAVX2 | has512F | has512D | has512B | has512V, savesYMM | savesZMM},
		{AVX2, hasFMA | hasAVX | hasF16C, hasBMI1 | hasBMI2 | hasAVX2, savesYMM},
	} {
		if one&need.one == need.one && seven&need.seven == need.seven && saves&need.saves == need.saves {
			return need.isa
		}
	}
	return None
}
