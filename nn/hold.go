package nn

import (
	"cmp"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
)

func init() {
	hold.Mark = func(p any, t hold.Turn) { p.(*Param).turn = t }
}

// hold waits for running steps that change some of the parameters, and blocks further ones until
// free is called.
func (w *walker) hold() (free func(), err error) {
	var turns []hold.Turn
	for _, n := range w.found {
		if t := n.turn; t != nil && !slices.Contains(turns, t) {
			turns = append(turns, t)
		}
	}
	slices.SortFunc(turns, func(a, b hold.Turn) int { return cmp.Compare(a.Order(), b.Order()) })
	held := 0
	free = func() {
		for ; held > 0; held-- {
			turns[held-1].Free()
		}
	}
	for _, t := range turns {
		if err := t.Hold(); err != nil {
			free()
			return nil, err
		}
		held++
	}
	return free, nil
}

// still returns the parameters as they are between two steps, by name: handles that no step
// changes, on streams of their own. Reading them therefore does not disturb a recording. end
// releases them.
func (w *walker) still() (tensors map[string]*millrace.Tensor, end func(), err error) {
	free, err := w.hold()
	if err != nil {
		return nil, nil, err
	}
	defer free()
	streams := map[millrace.Device]*millrace.Stream{}
	tensors = map[string]*millrace.Tensor{}
	for _, n := range w.found {
		d := n.t.Stream().Device()
		if streams[*d] == nil {
			streams[*d] = d.NewStream()
		}
		tensors[n.Name] = n.t.To(streams[*d])
	}
	return tensors, func() {
		for _, t := range tensors {
			drop(t)
		}
		for _, s := range streams {
			s.Close() // nothing is queued on it
		}
	}, nil
}
