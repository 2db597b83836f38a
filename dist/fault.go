package dist

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
)

// ErrMismatch: the ranks do not run the same program, or do not call the same collectives with the
// same dtypes and shapes. The text says which ranks have what.
var ErrMismatch = errors.New("the ranks differ")

// ErrClosed: the World was closed. It is package millrace's.
var ErrClosed = millrace.ErrClosed

// State is why a World failed.
type State string

const (
	NoAnswer State = "no answer" // the rank is dead, stopped, or cannot be reached
	Behind   State = "behind"    // the rank lives, but has not come to the collective
	Failed   State = "failed"    // the rank had an error of its own
)

// RankError says which rank made a World fail.
type RankError struct {
	Rank  int
	Host  string
	State State
	Call  string // where that rank was last, or where others waited for it
	Err   error  // that rank's error if State is Failed; on other ranks only its text
}

func (e *RankError) Error() string {
	who := fmt.Sprintf("dist: rank %d (%s)", e.Rank, e.Host)
	switch e.State {
	case NoAnswer:
		return fmt.Sprintf("%s does not answer: it is dead, stopped or cannot be reached; others wait in %s", who, e.Call)
	case Behind:
		return fmt.Sprintf("%s is behind: it is %s", who, e.Call)
	}
	in := "in "
	if strings.HasPrefix(e.Call, "after ") || strings.HasPrefix(e.Call, "before ") {
		in = ""
	}
	return fmt.Sprintf("%s failed %s%s: %v", who, in, e.Call, e.Err)
}

// Unwrap returns that rank's error.
func (e *RankError) Unwrap() error { return e.Err }

// mismatch is an ErrMismatch with its text.
type mismatch struct{ text string }

func (m *mismatch) Error() string  { return "dist: " + m.text }
func (m *mismatch) Unwrap() error  { return ErrMismatch }
func differ(text string) *mismatch { return &mismatch{ErrMismatch.Error() + ": " + text} }

func (w *World) others() (rs []int) { return without(w.info.Size, w.info.Rank) }

func without(n, r int) (rs []int) {
	for i := range n {
		if i != r {
			rs = append(rs, i)
		}
	}
	return rs
}

// ownFault makes an error of this rank the World's.
func (w *World) ownFault(err error) error {
	return &RankError{Rank: w.info.Rank, Host: w.host(w.info.Rank), State: Failed, Call: w.where().String(), Err: err}
}

// fail makes err the World's error, unless it has one already, and returns the World's error. The
// loop notes it to all ranks.
func (w *World) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.failed)
	}
	return w.err
}

// Fail ends the job because this rank cannot go on: all ranks' pending and later calls return a
// [*RankError] with err's text. It does not wait. A World that has failed keeps its first error.
func (w *World) Fail(err error) {
	if err == nil {
		return
	}
	w.fail(w.ownFault(err))
	w.loop.request(func() {}) // it may be idle
}

// Kinds of notes. Fields are separated by a zero byte; the last one is a text that may be cut.
const (
	noteAsk    = "?" // number of the question
	noteAnswer = "!" // number of the question, call, whether in it, nanoseconds, operation
	noteRank   = "R" // rank, state, call, error
	noteDiffer = "D" // text
)

// note makes a note of at most MaxNote bytes.
func note(kind string, fields ...string) []byte {
	b := []byte(kind)
	for i, f := range fields {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, bytes.ReplaceAll([]byte(f), []byte{0}, []byte{' '})...)
	}
	return b[:min(len(b), MaxNote)]
}

// tell notes the World's failure to all ranks, once.
func (l *loop) tell(err error) {
	if l.told {
		return
	}
	l.told = true
	text := note(noteDiffer, err.Error())
	if re, ok := errors.AsType[*RankError](err); ok {
		cause := ""
		if re.Err != nil {
			cause = re.Err.Error()
		}
		call := re.Call
		text = note(noteRank, strconv.Itoa(re.Rank), string(re.State), call[:min(len(call), 200)], cause)
	}
	for _, r := range l.w.others() {
		l.drv.Note(r, text) // a rank that cannot be told finds out by its deadline
	}
}

// readNote handles one note that has arrived.
func (l *loop) readNote() bool {
	from, text, ok := l.drv.Notes()
	if !ok {
		return false
	}
	if len(text) == 0 || from < 0 || from >= l.w.info.Size {
		return true
	}
	fields := bytes.Split(text[1:], []byte{0})
	switch kind := string(text[:1]); {
	case kind == noteAsk:
		s := l.w.where()
		l.drv.Note(from, note(noteAnswer, string(fields[0]), strconv.FormatUint(s.call, 10),
			s.within(), strconv.FormatInt(int64(time.Since(s.since)), 10), s.name))
	case kind == noteAnswer && len(fields) == 5:
		l.asked.answer(from, fields)
	case kind == noteRank && len(fields) == 4:
		l.heard(from, l.w.noted(fields))
	case kind == noteDiffer:
		l.heard(from, &mismatch{string(bytes.TrimPrefix(text[1:], []byte("dist: ")))})
	}
	return true
}

// noted is the error of a noteRank.
func (w *World) noted(fields [][]byte) error {
	r, err := strconv.Atoi(string(fields[0]))
	if err != nil || r < 0 || r >= w.info.Size {
		r = w.info.Rank
	}
	e := &RankError{Rank: r, Host: w.host(r), State: State(fields[1]), Call: string(fields[2])}
	if len(fields[3]) > 0 {
		e.Err = errors.New(string(fields[3]))
	}
	return e
}

// heard learns that another rank's World failed.
func (l *loop) heard(from int, err error) {
	l.w.fail(err)
	l.w.heardFrom(from)
}

// host is the name of a rank's machine.
func (w *World) host(r int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		return "host unknown"
	}
	return w.names[r]
}
