package operror

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/millrace-go/millrace/ir"
)

// ErrReleased is the use of a tensor after Release or after its Scope ended.
var ErrReleased = errors.New("use of a released tensor")

// ErrNoValue is the use of a tensor that is none.
var ErrNoValue = errors.New("nil tensor, or one that no op made")

// Error is what went wrong with one op: which, where it was called, on what.
type Error struct {
	Op     string     // name of the op, as in "add"
	Caller string     // file:line of the first caller outside the module's packages, or what stands for it
	Shapes []ir.Shape // of the operands
	Err    error

	seen atomic.Bool // somebody was told
}

func (e *Error) Error() string {
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
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Caller != "" {
		b.WriteString(" (at " + e.Caller + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Bug is a broken invariant of the engine itself, caught at a flush.
type Bug struct {
	Pass  string // what was being done
	Cause any
}

func (e *Bug) Error() string {
	return fmt.Sprintf("internal error in %s: %v (please report it)", e.Pass, e.Cause)
}
