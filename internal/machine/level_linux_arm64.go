//go:build gc

package machine

// processor: Go itself wants what NEON has of every arm64, so that nothing is asked of
// the system (HWCAP), nor of registers that a program may not read.
func processor() ISA { return NEON }
