package optim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/operror"
)

// turn lets one caller at a time use an optimiser: runs of its steps and updates come one after
// another. The caller with the turn calls functions of the program, losses and rates. A call in
// such a function that needs the turn again would wait for itself, and is an error.
type turn struct {
	mu     sync.Mutex
	asking atomic.Bool // a function of the program is running

	leave sync.Mutex // guards later
	later []func()   // actions for the end of the turn
}

var errInside = errors.New("called by the function of a Step or by a Rate, for whose end an optimiser waits: call it between steps")

// take waits for the turn until ctx is done, if ctx is not nil. give ends the turn.
func (t *turn) take(ctx context.Context, op string) error {
	switch {
	case t.mu.TryLock():
		return nil
	case t.asking.Load() && isAsked():
		return failure(op, errInside)
	case ctx == nil || ctx.Done() == nil:
		t.mu.Lock()
		return nil
	}
	got := make(chan struct{})
	go func() {
		t.mu.Lock()
		select {
		case got <- struct{}{}:
		case <-ctx.Done():
			t.mu.Unlock()
		}
	}()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give ends the turn.
func (t *turn) give() {
	t.leave.Lock()
	list := t.later
	t.later = nil
	t.leave.Unlock()
	for _, f := range list {
		f()
	}
	t.mu.Unlock()
}

// soon calls f with the turn. Inside a function of the program, f runs at the end of the current
// turn.
func (t *turn) soon(f func()) {
	if t.take(nil, "") != nil {
		t.leave.Lock()
		t.later = append(t.later, f)
		t.leave.Unlock()
		return
	}
	defer t.give()
	f()
}

// ask calls a function of the program. The caller has the turn.
//
//go:noinline
func (t *turn) ask(f func()) {
	t.asking.Store(true)
	defer t.asking.Store(false)
	f()
}

// asks is the name of ask in a stack trace.
const asks = "github.com/millrace-go/millrace/optim.(*turn).ask"

// isAsked reports whether ask of any turn is among the callers. A caller that waits for another
// optimiser inside of one could be part of a cycle.
func isAsked() bool { return operror.Within(asks) > 0 }
