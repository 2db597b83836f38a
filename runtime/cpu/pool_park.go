//go:build !linux

package cpu

import (
	"sync"
	"sync/atomic"
)

// parker puts a thread to sleep.
type parker struct {
	asleep atomic.Bool // or about to be, until somebody claims to wake it
	once   sync.Once
	woken  chan struct{}
}

func (p *parker) signal() chan struct{} {
	p.once.Do(func() { p.woken = make(chan struct{}, 1) })
	return p.woken
}

// prepare says that the thread is about to sleep.
func (p *parker) prepare() { p.asleep.Store(true) }

// cancel takes that back; false where somebody wakes the thread already.
func (p *parker) cancel() bool { return p.claim() }

// claim reports that the caller, and nobody else, is to wake the thread.
func (p *parker) claim() bool { return p.asleep.CompareAndSwap(true, false) }

// park sleeps until the thread is woken.
func (p *parker) park() { <-p.signal() }

// wake wakes the thread, for whoever claimed it.
func (p *parker) wake() { p.signal() <- struct{}{} }

// Threads stay where the system puts them.
type places struct{}

type place struct{}

func here() int32 { return 0 }

func (p *places) find() bool { return false }

func (w *place) settle() {}

func (w *place) keepOff(*places, int32, bool) {}

func (w *place) comeBack(*places) {}
