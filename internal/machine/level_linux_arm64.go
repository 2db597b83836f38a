//go:build gc

package machine

// processor returns NEON: Go requires it of every arm64. No query of the system (HWCAP), or of
// registers that programs may not read, is needed.
func processor() ISA { return NEON }
