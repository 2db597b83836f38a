package gpuchild

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// own returns this package's buffer of b.
func (d *Device) own(b gpurun.Buffer) (*buffer, error) {
	switch x, ok := b.(*buffer); {
	case !ok || x.dev != d:
		return nil, errors.New("gpu: the buffer belongs to another device")
	case x.gone.Load():
		return nil, errors.New("gpu: the buffer was released")
	default:
		return x, nil
	}
}

// Submit runs dispatches in order, after it has written words to params.
func (d *Device) Submit(list []gpurun.Dispatch, params gpurun.Buffer, words []byte) error {
	if len(list) == 0 {
		return nil
	}
	r := &request{Call: callSubmit, Data: words}
	var err error
	if r.List, err = d.dispatches(list); err != nil {
		return err
	}
	if len(words) > 0 {
		b, err := d.own(params)
		if err != nil {
			return err
		}
		r.Object = b.id
	}
	_, err = d.call(r)
	return err
}

// dispatches checks whose objects a list names, and returns it by their numbers.
func (d *Device) dispatches(list []gpurun.Dispatch) ([]dispatch, error) {
	numbered := make([]dispatch, len(list))
	for i := range list {
		p, ok := list[i].Pipe.(*pipeline)
		if !ok || p.dev != d {
			return nil, fmt.Errorf("dispatch %d: gpu: the pipeline belongs to another device", i)
		}
		x := dispatch{Pipe: p.id, Bind: make([]bound, len(list[i].Bind)), Groups: list[i].Groups, Look: list[i].Look}
		for j, b := range list[i].Bind {
			own, err := d.own(b.Buf)
			if err != nil {
				return nil, fmt.Errorf("dispatch %d: binding %d: %w", i, j, err)
			}
			x.Bind[j] = bound{own.id, b.Off, b.Size}
		}
		if u := list[i].Unless; u.Buf != nil {
			own, err := d.own(u.Buf)
			if err != nil {
				return nil, fmt.Errorf("dispatch %d: %w", i, err)
			}
			x.Unless = bound{own.id, u.Off, u.Size}
		}
		numbered[i] = x
	}
	return numbered, nil
}

// Write fills n bytes of b at off.
func (d *Device) Write(b gpurun.Buffer, off, n int64, fill func(dst []byte, at int64)) error {
	return d.transfer(callWrite, b, off, n, fill, nil)
}

// Read passes n bytes of b at off to drain.
func (d *Device) Read(b gpurun.Buffer, off, n int64, drain func(src []byte, at int64)) error {
	return d.transfer(callRead, b, off, n, nil, drain)
}

// part is a slot in transfer.
type part struct {
	slot  int
	at, n int64
	reply chan *reply
}

// transfer moves bytes through the slots, at most two at a time and in order. A transfer that waits
// for a slot holds none, so transfers that hold slots proceed.
func (d *Device) transfer(how call, buf gpurun.Buffer, off, n int64, before, after func(part []byte, at int64)) (err error) {
	b, err := d.own(buf)
	if err != nil {
		return err
	}
	d.mu.Lock()
	if err := d.usable(); err != nil {
		d.mu.Unlock()
		return err
	}
	d.transfers.Add(1)
	d.mu.Unlock()
	defer d.transfers.Done()
	var ahead []part
	finish := func() {
		p := ahead[0]
		ahead = ahead[1:]
		if _, e := d.finish(p.reply); err == nil {
			err = e
		}
		if err == nil && after != nil {
			after(slot(d.process.shared, p.slot, p.n), p.at)
		}
		d.free <- p.slot
	}
	defer func() {
		for len(ahead) > 0 {
			finish()
		}
	}()
	for at := int64(0); at < n && err == nil; at += slotSize {
		p := part{at: at, n: min(slotSize, n-at)}
		if len(ahead) == 2 {
			finish()
		}
		select {
		case p.slot = <-d.free:
		default:
			for len(ahead) > 0 {
				finish()
			}
			p.slot = <-d.free
		}
		if err != nil {
			d.free <- p.slot
			break
		}
		if before != nil {
			before(slot(d.process.shared, p.slot, p.n), at)
		}
		if p.reply, err = d.begin(&request{Call: how, Object: b.id, Off: off + at, N: p.n, Slot: p.slot}); err != nil {
			d.free <- p.slot
			break
		}
		ahead = append(ahead, p)
	}
	return err
}
