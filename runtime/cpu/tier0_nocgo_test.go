//go:build !cgo

package cpu

// Without cgo there is one twin only.

func nativeCallers() map[string]blockCaller { return nil }

func (t *tier0Code) evalNative(a *args, begin, end int64) { t.eval(a, begin, end) }
