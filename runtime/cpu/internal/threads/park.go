//go:build !linux

package threads

import (
	"sync"
	"sync/atomic"
)

// parker puts a thread to sleep.
type parker struct {
	asleep atomic.Bool // true from prepare until a claim or cancel
	once   sync.Once
	woken  chan struct{}
}

func (p *parker) signal() chan struct{} {
	p.once.Do(func() { p.woken = make(chan struct{}, 1) })
	return p.woken
}

// prepare marks the thread as about to sleep.
func (p *parker) prepare() { p.asleep.Store(true) }

// cancel withdraws prepare; it returns false if another thread is already waking this one.
func (p *parker) cancel() bool { return p.claim() }

// claim reports that the caller, and no other thread, must wake the thread.
func (p *parker) claim() bool { return p.asleep.CompareAndSwap(true, false) }

// park sleeps until the thread is woken.
func (p *parker) park() { <-p.signal() }

// wake wakes the thread. The caller has claimed it.
func (p *parker) wake() { p.signal() <- struct{}{} }

// places and place do nothing here: threads run where the system puts them.
type places struct{}

type place struct{}

func here() int32 { return 0 }

func (p *places) find() bool { return false }

func (w *place) settle() {}

func (w *place) keepOff(*places, int32, bool) {}

func (w *place) comeBack(*places) {}
