package stream

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/ir"
)

// ErrReleased is the use of a tensor after Release or after its Scope ended.
var ErrReleased = errors.New("use of a released tensor")

// OpError is what went wrong with one op: which, where it was called, on what.
type OpError struct {
	Op     string     // name of the op, as in "add"
	Caller string     // file:line of the first caller outside the module's packages
	Shapes []ir.Shape // of the operands
	Err    error

	seen atomic.Bool // somebody was told
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	for i, s := range e.Shapes {
		if i == 0 {
			b.WriteByte(' ')
		} else {
			b.WriteString(", ")
		}
		b.WriteString(s.String())
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	if e.Caller != "" {
		b.WriteString(" (at " + e.Caller + ")")
	}
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }

// modulePath prefixes the functions that are not a user's caller.
const modulePath = "github.com/millrace-go/millrace"

// caller is the position of the first frame outside the library's own
// packages: tests and commands of the module count as users.
func caller() string {
	var pcs [32]uintptr
	const few = 8 // are enough for most ops, and each takes time to find
	n := goruntime.Callers(2, pcs[:few])
	line := outside(pcs[:n])
	if line == "" && n == few {
		line = outside(pcs[:goruntime.Callers(2, pcs[:])])
	}
	return line
}

func outside(pcs []uintptr) string {
	for _, pc := range pcs {
		if f := frameOf(pc); !f.ours {
			return f.line
		}
	}
	return ""
}

// frame is what a program counter of a call stack means here.
type frame struct {
	line string // file:line, of those who are not ours
	ours bool
}

// frames are those looked up so far, by program counter. Each costs a microsecond
// or two, while the ops of a program that no plan is known of come from few lines
// over and over, through the same functions of the library. There are no more than
// places in the program that calls are made from.
var frames = struct {
	sync.Mutex
	at map[uintptr]frame
}{at: map[uintptr]frame{}}

// frameOf is the frame of one program counter that runtime.Callers gave: it gives
// one for each call, also for those that were inlined.
func frameOf(pc uintptr) frame {
	frames.Lock()
	defer frames.Unlock()
	if f, ok := frames.at[pc]; ok {
		return f
	}
	at, _ := goruntime.CallersFrames([]uintptr{pc}).Next()
	f := frame{ours: ours(at)}
	if !f.ours {
		f.line = at.File + ":" + strconv.Itoa(at.Line)
	}
	frames.at[pc] = f
	return f
}

// notCallers are the packages below the root that call it, or are called by
// it, on a user's behalf.
var notCallers = map[string]bool{"stream": true, "npy": true, "safetensors": true, "internal/tensorfile": true}

func ours(f goruntime.Frame) bool {
	rest, ok := strings.CutPrefix(f.Function, modulePath)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	if rest == "" || rest[0] == '.' {
		return rest != ""
	}
	pkg, _, _ := strings.Cut(rest[1:], ".")
	return notCallers[pkg]
}

// site is a position not looked up yet: taking one down costs a tenth of
// printing it.
type site [6]uintptr

// here takes down the callers of the function that calls it.
func here() (at site) {
	goruntime.Callers(3, at[:])
	return at
}

func (at site) String() string {
	n := 0
	for n < len(at) && at[n] != 0 {
		n++
	}
	return outside(at[:n])
}

func newOpError(op string, err error, args []Arg) *OpError {
	e := &OpError{Op: op, Caller: caller(), Err: err}
	for _, a := range args {
		if a.V != nil {
			e.Shapes = append(e.Shapes, a.V.Shape())
		}
	}
	return e
}

// InternalError is a broken invariant of the engine itself, caught at a flush.
type InternalError struct {
	Pass  string // what was being done
	Cause any
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("internal error in %s: %v (please report it)", e.Pass, e.Cause)
}
