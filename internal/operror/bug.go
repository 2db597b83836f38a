package operror

import (
	goruntime "runtime"
)

// Recover turns a panic of the engine's own making into an error. Runtime
// panics of Go (nil pointers, indices) are not swallowed.
func Recover(pass string, err *error) {
	switch r := recover().(type) {
	case nil:
	case goruntime.Error:
		panic(r)
	default:
		*err = &Bug{Pass: pass, Cause: r}
	}
}
