package gpuchild

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// mark is the environment variable of processes that are to serve; its value is the driver's name.
const mark = "MILLRACE_ISOLATED"

// Serve does nothing, except in a process that was started for a device of this driver. There it
// serves the device, and ends the process when its parent closes it or has ended. Drivers call it
// when they are initialised.
func Serve(driver string, open func(adapter string) (gpurun.Device, error)) {
	if os.Getenv(mark) != driver {
		return
	}
	os.Unsetenv(mark) // not for processes that the graphics driver starts
	in, out, shared, err := attach()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is set, but millrace did not set it: %v\n", mark, err)
		os.Exit(2)
	}
	s := &server{open: open, shared: shared, replies: newSender(out), buffers: map[uint64]gpurun.Buffer{}, pipes: map[uint64]gpurun.Pipeline{}, works: map[uint64]gpurun.Recording{}}
	_ = s.replies.send(&reply{ID: greeting}) // a parent that has ended closes the other pipe, too
	requests := newReceiver(in)
	for {
		r := new(request)
		if requests.Decode(r) != nil { // the parent closed the pipe, or ended
			os.Exit(0)
		}
		switch r.Call {
		case callReleaseBuffer, callReleasePipeline, callReleaseRecording: // before the next request
			_ = s.do(r, &reply{})
		default:
			go s.answer(r) // a Wait must not delay other requests
		}
	}
}

// server is the device in its process.
type server struct {
	open    func(adapter string) (gpurun.Device, error)
	gpu     gpurun.Device // nil until opened
	shared  []byte
	replies *sender

	mu      sync.Mutex
	buffers map[uint64]gpurun.Buffer
	pipes   map[uint64]gpurun.Pipeline
	works   map[uint64]gpurun.Recording
}

func (s *server) answer(r *request) {
	a := &reply{ID: r.ID}
	a.Fault = failureOf(s.do(r, a))
	if s.gpu != nil {
		a.Backlog = s.gpu.Backlog()
	}
	if s.replies.send(a) != nil {
		os.Exit(1) // no parent is left to report to
	}
}

// calls execute requests.
var calls = [numCalls]func(*server, *request, *reply) error{
	callOpen: func(s *server, r *request, a *reply) (err error) {
		if s.gpu, err = s.open(r.Text); err != nil {
			return err
		}
		info := s.gpu.Info()
		a.Info = &info
		_, a.Keeper = s.gpu.(gpurun.Keeper)
		_, a.Records = s.gpu.(gpurun.Recorder)
		return nil
	},
	callNewBuffer: func(s *server, r *request, a *reply) error {
		b, err := s.gpu.NewBuffer(r.N, r.Use)
		if err != nil {
			return err
		}
		a.Size = b.Size()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.buffers[r.Object] = b
		return nil
	},
	callReleaseBuffer: func(s *server, r *request, _ *reply) error {
		give(s, s.buffers, r.Object)
		return nil
	},
	callNewPipeline: func(s *server, r *request, _ *reply) error {
		p, err := s.gpu.NewPipeline(r.Text, r.Bindings)
		return keep(s, s.pipes, r.Object, p, err)
	},
	callNewPipelineOf: func(s *server, r *request, _ *reply) error {
		p, err := s.gpu.(gpurun.Keeper).NewPipelineOf(r.Data, r.Bindings)
		return keep(s, s.pipes, r.Object, p, err)
	},
	callReleasePipeline: func(s *server, r *request, _ *reply) error {
		give(s, s.pipes, r.Object)
		return nil
	},
	callBinary: func(s *server, r *request, a *reply) (err error) {
		s.mu.Lock()
		p := s.pipes[r.Object]
		s.mu.Unlock()
		if p == nil {
			return errors.New("gpu: the pipeline was released")
		}
		a.Data, err = s.gpu.(gpurun.Keeper).Binary(p)
		return err
	},
	callWrite: func(s *server, r *request, _ *reply) error {
		b, err := s.buffer(r.Object)
		if err != nil {
			return err
		}
		src := slot(s.shared, r.Slot, r.N)
		return s.gpu.Write(b, r.Off, r.N, func(dst []byte, at int64) { copy(dst, src[at:]) })
	},
	callRead: func(s *server, r *request, _ *reply) error {
		b, err := s.buffer(r.Object)
		if err != nil {
			return err
		}
		dst := slot(s.shared, r.Slot, r.N)
		return s.gpu.Read(b, r.Off, r.N, func(src []byte, at int64) { copy(dst[at:], src) })
	},
	callSubmit: func(s *server, r *request, _ *reply) error {
		s.mu.Lock()
		list, err := s.dispatches(r.List)
		params := s.buffers[r.Object]
		s.mu.Unlock()
		if err != nil {
			return err
		}
		return s.gpu.Submit(list, params, r.Data)
	},
	callRecord: func(s *server, r *request, _ *reply) error {
		s.mu.Lock()
		zero, list, err := s.work(r.Zero, r.List)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		w, err := s.gpu.(gpurun.Recorder).Record(zero, list)
		return keep(s, s.works, r.Object, w, err)
	},
	callPlay: func(s *server, r *request, _ *reply) error {
		list, err := s.workList(r.Works)
		if err != nil {
			return err
		}
		return s.gpu.(gpurun.Recorder).Play(list)
	},
	callReleaseRecording: func(s *server, r *request, _ *reply) error {
		give(s, s.works, r.Object)
		return nil
	},
	callWait:  func(s *server, _ *request, _ *reply) error { return s.gpu.Wait() },
	callClose: func(s *server, _ *request, _ *reply) error { return s.gpu.Close() },
}

func (s *server) do(r *request, a *reply) error {
	if r.Call >= numCalls || s.gpu == nil && r.Call != callOpen {
		return fmt.Errorf("gpu: call %d is unknown", r.Call)
	}
	return calls[r.Call](s, r, a)
}

// give releases an object, if it still exists.
func give[T interface{ Release() }](s *server, list map[uint64]T, id uint64) {
	s.mu.Lock()
	x, ok := list[id]
	delete(list, id)
	s.mu.Unlock()
	if ok {
		x.Release()
	}
}

// keep stores a new object under the number that the parent gave it.
func keep[T any](s *server, list map[uint64]T, id uint64, x T, err error) error {
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list[id] = x
	return nil
}

func (s *server) buffer(id uint64) (gpurun.Buffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buffers[id]; b != nil {
		return b, nil
	}
	return nil, errors.New("gpu: the buffer was released")
}

// dispatches returns a request's dispatches. The caller holds the lock.
func (s *server) dispatches(of []dispatch) ([]gpurun.Dispatch, error) {
	list := make([]gpurun.Dispatch, len(of))
	for i, x := range of {
		list[i] = gpurun.Dispatch{Pipe: s.pipes[x.Pipe], Bind: make([]gpurun.Range, len(x.Bind)), Groups: x.Groups, Look: x.Look}
		if list[i].Pipe == nil {
			return nil, fmt.Errorf("dispatch %d: gpu: the pipeline was released", i)
		}
		for j, b := range x.Bind {
			list[i].Bind[j] = gpurun.Range{Buf: s.buffers[b.Buf], Off: b.Off, Size: b.Size}
			if list[i].Bind[j].Buf == nil {
				return nil, fmt.Errorf("dispatch %d: binding %d: gpu: the buffer was released", i, j)
			}
		}
		if u := x.Unless; u.Buf != 0 {
			list[i].Unless = gpurun.Range{Buf: s.buffers[u.Buf], Off: u.Off, Size: u.Size}
			if list[i].Unless.Buf == nil {
				return nil, fmt.Errorf("dispatch %d: gpu: the buffer of faults was released", i)
			}
		}
	}
	return list, nil
}

// work returns dispatches and the range that is filled with zeros before them. The caller holds the
// lock.
func (s *server) work(zero bound, of []dispatch) (gpurun.Range, []gpurun.Dispatch, error) {
	r := gpurun.Range{Off: zero.Off, Size: zero.Size}
	if zero.Buf != 0 {
		if r.Buf = s.buffers[zero.Buf]; r.Buf == nil {
			return r, nil, errors.New("gpu: the buffer was released")
		}
	}
	list, err := s.dispatches(of)
	return r, list, err
}

// workList returns the work of a request.
func (s *server) workList(of []work) ([]gpurun.Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]gpurun.Work, len(of))
	for i, x := range of {
		var err error
		if x.Rec == 0 {
			list[i].Zero, list[i].List, err = s.work(x.Zero, x.List)
		} else if list[i].Rec = s.works[x.Rec]; list[i].Rec == nil {
			err = gpurun.ErrStale
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
