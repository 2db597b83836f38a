package segment

// Policy says where a stream is cut if no read ends the segment. The cut depends on the program
// only, so the same program is always cut at the same places.
type Policy struct {
	Soft   int // number of operations from which Cut looks for a repetition
	Hard   int // number of operations at which the stream is cut in any case
	Window int // number of operations that must repeat to count as the next turn of a loop
}

// Window is the usual window of a Policy.
const Window = 4

// Cut returns how many of n queued operations the segment gets, 0 for no cut yet. local(i) is
// operation i without the tensors it names. A cut before the repeated operations makes the next
// segment begin with the same operations as this one.
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
