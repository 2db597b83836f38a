//go:build !amd64 || !gc

package machine

func processor() ISA { return None }
