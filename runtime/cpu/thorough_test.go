package cpu

import "os"

// thorough asks for all combinations where a sample has to do: each new
// combination of accesses costs a run of the compiler. See make test-long.
var thorough = os.Getenv("MILLRACE_LONG") != ""
