package machine

import (
	"fmt"
	"os"
	"sync"
)

// ISA is which instructions code may have, of those that there is an encoder for.
type ISA uint8

// The instruction sets, each with those before it of the same processors.
const (
	None   ISA = iota
	AVX2       // with FMA, F16C, BMI1 and BMI2
	AVX512     // F, BW, DQ and VL
	NEON       // of arm64, all of which have it
)

var isaNames = [...]string{None: "none", AVX2: "avx2", AVX512: "avx512", NEON: "neon"}

// Has says that code for o runs where the level is i.
func (i ISA) Has(o ISA) bool { return o == None || i >= o && (i == NEON) == (o == NEON) }

func (i ISA) String() string { return isaNames[i] }

// LevelVariable is the environment variable that lowers Level, or, on arm64, raises it:
// machine code there has been run by an emulator alone, which shows neither speed nor
// what caches do, and is had where it is asked for.
const LevelVariable = "MILLRACE_LEVEL"

// Level is what code for this process may have: what the processor has, the system
// saves and MILLRACE_LEVEL allows. None where Supported is false.
func Level() ISA {
	level, _ := level()
	return level
}

// LevelError says what is wrong with MILLRACE_LEVEL; nil if nothing is.
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

// lowered is have, or what the text says if that is less.
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
		return None, nil // of other processors
	}
	have, _ = lowered(have, "")
	return have, fmt.Errorf("%s is %q: want none, avx2 or avx512, or neon on arm64", LevelVariable, text)
}
