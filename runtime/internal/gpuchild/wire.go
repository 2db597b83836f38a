package gpuchild

import (
	"bufio"
	"encoding/gob"
	"errors"
	"io"
	"sync"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// call is the kind of a request: a method of gpurun.Device, Buffer, Pipeline or Recording.
type call uint8

const (
	callOpen call = iota
	callNewBuffer
	callReleaseBuffer // has no reply
	callNewPipeline
	callNewPipelineOf
	callReleasePipeline // has no reply
	callBinary
	callWrite
	callRead
	callSubmit
	callRecord
	callPlay
	callReleaseRecording // has no reply
	callWait
	callClose
	numCalls
)

// request is a call with its arguments. The parent numbers buffers, pipelines and recordings.
type request struct {
	ID       uint64 // of the request
	Call     call
	Object   uint64 // the buffer, pipeline or recording
	Off, N   int64  // in bytes
	Slot     int    // of the shared memory
	Use      gpurun.Use
	Text     string // a shader, or an adapter's name
	Data     []byte // run-time words, or a binary
	Bindings []gpurun.Binding
	List     []dispatch
	Zero     bound // of a recording
	Works    []work
}

// dispatch is a gpurun.Dispatch.
type dispatch struct {
	Pipe   uint64
	Bind   []bound
	Groups [3]uint32
	Unless bound
	Look   bool
}

// work is a gpurun.Work.
type work struct {
	Rec  uint64 // 0: none
	Zero bound
	List []dispatch
}

type bound struct {
	Buf       uint64
	Off, Size int64
}

// greeting is the id of the reply that says that the process serves.
const greeting = 0

// reply is the result of a call.
type reply struct {
	ID      uint64
	Fault   *failure
	Size    int64 // of a buffer
	Data    []byte
	Backlog int
	Info    *gpurun.Info
	Keeper  bool // the device exports binaries
	Records bool // the device has recordings
}

// failure is an error in transfer: its text, and the kind by which a Runner distinguishes errors.
type failure struct {
	Kind   int // index in kinds, from one
	Source bool
	Text   string
}

var kinds = [...]error{gpurun.ErrLost, gpurun.ErrMemory, gpurun.ErrClosed, gpurun.ErrBinary, gpurun.ErrStale}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	var se *gpurun.SourceError
	if errors.As(err, &se) {
		f.Source, f.Text = true, se.Log
	}
	for i, k := range kinds {
		if errors.Is(err, k) {
			f.Kind = i + 1
			break
		}
	}
	return f
}

func (f *failure) err() error {
	switch {
	case f == nil:
		return nil
	case f.Source:
		return &gpurun.SourceError{Log: f.Text}
	case f.Kind > 0 && f.Kind <= len(kinds):
		return &told{f.Text, kinds[f.Kind-1]}
	}
	return errors.New(f.Text)
}

// told is an error of the other process.
type told struct {
	text string
	kind error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// sender writes messages, each as a whole.
type sender struct {
	mu  sync.Mutex
	out *bufio.Writer
	enc *gob.Encoder
}

func newSender(w io.Writer) *sender {
	out := bufio.NewWriterSize(w, 64<<10)
	return &sender{out: out, enc: gob.NewEncoder(out)}
}

func (s *sender) send(message any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enc.Encode(message); err != nil {
		return err
	}
	return s.out.Flush()
}

func newReceiver(r io.Reader) *gob.Decoder { return gob.NewDecoder(bufio.NewReaderSize(r, 64<<10)) }

// The shared memory consists of slots. A transfer uses up to two: it fills one while the other is
// copied.
const (
	slotSize = 4 << 20
	numSlots = 4
)

func slot(shared []byte, i int, n int64) []byte {
	at := i * slotSize
	return shared[at : at+int(n) : at+int(n)]
}
