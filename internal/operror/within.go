package operror

import goruntime "runtime"

// Within is how many calls of a function, by its full name, the caller was called in. It looks
// at the whole stack: ask where something is about to wait, and it must not be for itself. The
// function must not be inlined.
func Within(function string) (calls int) {
	pcs := make([]uintptr, 64)
	for skip := 2; ; skip += len(pcs) {
		n := goruntime.Callers(skip, pcs)
		frames := goruntime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f goruntime.Frame
			if f, more = frames.Next(); f.Function == function {
				calls++
			}
		}
		if n < len(pcs) {
			return calls
		}
	}
}
