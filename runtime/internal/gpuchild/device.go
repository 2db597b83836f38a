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

// Device is a gpurun.Device in another process.
type Device struct {
	info     gpurun.Info
	process  *process
	requests *sender
	backlog  atomic.Int64  // as of the last reply
	free     chan int      // free slots of the shared memory
	ended    chan struct{} // closed after the process has ended

	mu        sync.Mutex
	lost      error // set once, then returned by every call
	closed    bool
	last      uint64                 // last number used
	waiting   map[uint64]chan *reply // by request
	transfers sync.WaitGroup         // those that access the shared memory
}

// ErrProcess: no process for the device could be started. Its driver was not called.
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
	return d.able(a), nil
}

// patience is the time that a program may need until its packages are initialised.
const patience = time.Minute

// greet waits until the process serves. A program in another language with this package in a
// library starts, but never serves.
func (d *Device) greet(greeted chan *reply) (*reply, error) {
	late := time.AfterFunc(patience, func() {
		d.Lose(fmt.Errorf("the started program did not become the device's process within %v", patience))
	})
	defer late.Stop()
	return d.finish(greeted)
}

// receive delivers replies until the pipe ends.
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
	// The process has ended, unless its pipe was closed.
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

// lose records why the device is lost, unless it is lost already, and returns the recorded reason.
func (d *Device) lose(why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = why
	}
	return d.lost
}

// begin sends a request; the reply arrives on the channel.
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

// enter numbers a request. The caller holds the lock and has checked that the device is not lost;
// receive therefore finds the request.
func (d *Device) enter(r *request) chan *reply {
	d.last++
	r.ID = d.last
	c := make(chan *reply, 1)
	d.waiting[r.ID] = c
	return c
}

// send writes a request. If that fails, it ends the process, and receive then answers.
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

// usable returns the reason why the device cannot be called. The caller holds the lock.
func (d *Device) usable() error {
	if d.closed {
		return gpurun.ErrClosed
	}
	return d.lost
}

// Usable returns the error that every call would return, or nil.
func (d *Device) Usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}

// Info describes the device's adapter.
func (d *Device) Info() gpurun.Info { return d.info }

// Backlog is the length of the queue as of the process's last reply.
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
	if a.Fault != nil && a.Fault.Kind != 1 { // a device lost meanwhile is also closed
		return a.Fault.err()
	}
	return nil
}

// end ends the process and frees the shared resources.
func (d *Device) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.process.in.Close()
	d.process.kill() // in any state: no call is running
	<-d.ended
	d.transfers.Wait()
	d.process.release()
}
