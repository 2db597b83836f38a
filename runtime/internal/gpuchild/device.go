package gpuchild

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Device is a gpurun.Device in a process of its own.
type Device struct {
	info     gpurun.Info
	process  *process
	requests *sender
	backlog  atomic.Int64  // as the last reply told it
	free     chan int      // slots of the shared memory
	ended    chan struct{} // closed once the process is gone

	mu        sync.Mutex
	lost      error // set once, returned from then on
	closed    bool
	last      uint64                 // number given away
	waiting   map[uint64]chan *reply // by request
	transfers sync.WaitGroup         // which look into the shared memory
}

// ErrProcess: there is no process for the device. Its driver was not asked.
var ErrProcess = errors.New("no process for an isolated device could be started")

// Open starts a process of this program and opens a device of the driver in it.
func Open(driver, adapter string) (gpurun.Device, error) {
	p, err := start(driver)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProcess, err)
	}
	d := &Device{
		process: p, requests: newSender(p.in), free: make(chan int, numSlots), ended: make(chan struct{}),
		waiting: map[uint64]chan *reply{},
	}
	for i := range numSlots {
		d.free <- i
	}
	greeted := make(chan *reply, 1)
	d.waiting[greeting] = greeted
	go d.receive()
	a, err := d.greet(greeted)
	if err == nil {
		a, err = d.call(&request{Call: callOpen, Text: adapter})
	}
	if err != nil {
		d.end()
		return nil, err
	}
	d.info = *a.Info
	if a.Keeper {
		return keeper{d}, nil
	}
	return d, nil
}

// patience is for what a program does before its packages are initialised.
const patience = time.Minute

// greet waits until the process serves: a program that is no Go program but has this
// package in a library of its own starts, and never does.
func (d *Device) greet(greeted chan *reply) (*reply, error) {
	late := time.AfterFunc(patience, func() {
		d.Lose(fmt.Errorf("what was started has not turned into its process within %v", patience))
	})
	defer late.Stop()
	return d.finish(greeted)
}

// receive hands out replies until there are no more.
func (d *Device) receive() {
	replies := newReceiver(d.process.out)
	for {
		a := new(reply)
		if replies.Decode(a) != nil {
			break
		}
		d.backlog.Store(int64(a.Backlog))
		d.mu.Lock()
		c := d.waiting[a.ID]
		delete(d.waiting, a.ID)
		d.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	// The process is gone, unless somebody closed its pipe.
	how := d.process.wait()
	d.lose(fmt.Errorf("%w: its process ended: %s", gpurun.ErrLost, how))
	d.mu.Lock()
	waiting := maps.Clone(d.waiting)
	clear(d.waiting)
	fault := failureOf(d.lost)
	d.mu.Unlock()
	for _, c := range waiting {
		c <- &reply{Fault: fault}
	}
	close(d.ended)
}

// lose sets why the device is lost, if it was not, and returns the reason there is.
func (d *Device) lose(why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = why
	}
	return d.lost
}

// begin sends a request whose reply comes through the channel.
func (d *Device) begin(r *request) (chan *reply, error) {
	d.mu.Lock()
	if err := d.usable(); err != nil {
		d.mu.Unlock()
		return nil, err
	}
	c := d.enter(r)
	d.mu.Unlock()
	d.send(r)
	return c, nil
}

// enter numbers a request. The caller holds the lock, and has seen that the device is
// not lost: so receive finds the request.
func (d *Device) enter(r *request) chan *reply {
	d.last++
	r.ID = d.last
	c := make(chan *reply, 1)
	d.waiting[r.ID] = c
	return c
}

// send writes a request. What cannot be written ends the process: then receive answers.
func (d *Device) send(r *request) {
	if err := d.requests.send(r); err != nil {
		d.process.kill()
	}
}

// finish waits for a reply.
func (d *Device) finish(c chan *reply) (*reply, error) {
	a := <-c
	if f := a.Fault; f != nil && f.Kind == 1 {
		return a, d.lose(f.err())
	}
	return a, a.Fault.err()
}

func (d *Device) call(r *request) (*reply, error) {
	c, err := d.begin(r)
	if err != nil {
		return nil, err
	}
	return d.finish(c)
}

// usable says why the device cannot be called. The caller holds the lock.
func (d *Device) usable() error {
	if d.closed {
		return gpurun.ErrClosed
	}
	return d.lost
}

// Usable is the error that every call would give, or nil.
func (d *Device) Usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}

// Info describes the device's adapter.
func (d *Device) Info() gpurun.Info { return d.info }

// Backlog is what the process last told of its queue.
func (d *Device) Backlog() int { return int(d.backlog.Load()) }

// Wait blocks until all submitted work is done.
func (d *Device) Wait() error {
	_, err := d.call(&request{Call: callWait})
	return err
}

// Lose ends the process.
func (d *Device) Lose(why error) {
	_ = d.lose(fmt.Errorf("%w: %v", gpurun.ErrLost, why))
	d.process.kill()
}

// Close waits for submitted work and ends the process.
func (d *Device) Close() error {
	r := &request{Call: callClose}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return gpurun.ErrClosed
	}
	d.closed = true
	if d.lost != nil {
		d.mu.Unlock()
		d.end()
		return nil
	}
	c := d.enter(r)
	d.mu.Unlock()
	d.send(r)
	a := <-c
	d.end()
	if a.Fault != nil && a.Fault.Kind != 1 { // a device that was lost meanwhile is closed, too
		return a.Fault.err()
	}
	return nil
}

// end lets the process go and frees what the two had in common.
func (d *Device) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.process.in.Close()
	d.process.kill() // whatever it does: nothing is under way any more
	<-d.ended
	d.transfers.Wait()
	d.process.release()
}
