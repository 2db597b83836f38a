package cpu

import "os"

// thorough makes tests try all combinations instead of a sample: each new combination of accesses
// is a run of the compiler. See make test-long.
var thorough = os.Getenv("MILLRACE_LONG") != ""
