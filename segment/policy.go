package segment

// Policy says where a stream is cut when nobody reads: at places that depend
// on the program only, so that the same program is cut the same way every
// time, whatever ran before.
type Policy struct {
	Soft   int // ops after which a cut is looked for
	Hard   int // ops after which the stream is cut anyway
	Window int // how many ops must repeat before a loop is taken to have come round
}

// Window is the usual one of policies.
const Window = 4

// Cut reports at how many ops to cut a queue of n ops, 0 for not yet. local(i)
// is the i-th op without the tensors it names. A cut before the repeated ops
// makes the next segment begin where this one began.
func Cut[K comparable](p Policy, n int, local func(i int) K) int {
	if n >= p.Soft && n > p.Window && repeats(p.Window, n, local) {
		return n - p.Window
	}
	if n >= p.Hard {
		return n
	}
	return 0
}

func repeats[K comparable](window, n int, local func(i int) K) bool {
	for i := range window {
		if local(i) != local(n-window+i) {
			return false
		}
	}
	return true
}
