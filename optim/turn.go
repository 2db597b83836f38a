package optim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/operror"
)

// turn lets one caller at a time use an optimiser: runs of its steps and updates come one
// after another. Functions of the program, losses and rates, are called by whoever has the
// turn. A call of them that asks for the turn again would wait for itself, and is an error.
type turn struct {
	mu     sync.Mutex
	asking atomic.Bool // a function of the program's runs

	leave sync.Mutex // of later
	later []func()   // what is to be done when the turn ends
}

var errInside = errors.New("it is called by a Step's function, or by a Rate, while an optimiser waits for that to end: call it between steps")

// take waits for the turn, which give ends, until ctx is done, if it is not nil.
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

// soon calls f when it has the turn. Inside a function of the program that is at the end of
// the turn at hand.
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

// ask calls a function of the program. The turn is the caller's.
//
//go:noinline
func (t *turn) ask(f func()) {
	t.asking.Store(true)
	defer t.asking.Store(false)
	f()
}

// asks is what the stack calls ask.
const asks = "github.com/millrace-go/millrace/optim.(*turn).ask"

// isAsked reports that the caller was called by ask, of whichever turn: who waits for another
// optimiser inside of one might be waited for by that.
func isAsked() bool { return operror.Within(asks) > 0 }
