package machine

import (
	"fmt"
	"os"
	"sync"
)

// ISA is the set of instructions that code may use, among those that have an encoder.
type ISA uint8

// The instruction sets; each includes the earlier ones of the same processor family.
const (
	None   ISA = iota
	AVX2       // with FMA, F16C, BMI1 and BMI2
	AVX512     // F, BW, DQ and VL
	NEON       // part of every arm64
)

var isaNames = [...]string{None: "none", AVX2: "avx2", AVX512: "avx512", NEON: "neon"}

// Has reports whether code for o runs at level i.
func (i ISA) Has(o ISA) bool { return o == None || i >= o && (i == NEON) == (o == NEON) }

func (i ISA) String() string { return isaNames[i] }

// LevelVariable is the environment variable that lowers Level, or raises it on arm64. Machine code
// for arm64 has only run in an emulator, which shows neither speed nor cache behavior. It is
// therefore used only on request.
const LevelVariable = "MILLRACE_LEVEL"

// Level is the set of instructions that code may use in this process: those that the processor has,
// the system saves and MILLRACE_LEVEL allows. It is None if Supported is false.
func Level() ISA {
	level, _ := level()
	return level
}

// LevelError reports an invalid MILLRACE_LEVEL, or nil.
func LevelError() error {
	_, err := level()
	return err
}

var level = sync.OnceValues(func() (ISA, error) {
	have := None
	if Supported() {
		have = processor()
	}
	return lowered(have, os.Getenv(LevelVariable))
})

// lowered is have, or the level in the text if that is lower.
func lowered(have ISA, text string) (ISA, error) {
	if text == "" {
		if have == NEON {
			have = None
		}
		return have, nil
	}
	for i, name := range isaNames {
		if name != text {
			continue
		}
		if asked := ISA(i); (have == NEON) == (asked == NEON) {
			return min(have, asked), nil
		}
		return None, nil // a level of other processors
	}
	have, _ = lowered(have, "")
	return have, fmt.Errorf("%s is %q: want none, avx2 or avx512, or neon on arm64", LevelVariable, text)
}
