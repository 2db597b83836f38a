//go:build !gc || (!amd64 && !(arm64 && linux))

package machine

func processor() ISA { return None }
