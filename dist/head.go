package dist

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// headSize is the bytes that each rank tells the others before a call.
const headSize = 64

// head is what each rank says before a call. Where heads differ, texts are exchanged.
type head struct {
	number   uint64 // of the call
	plan     uint64 // hash of the text
	text     uint32 // its length
	failed   bool   // this rank cannot take part; the text says why
	stopping bool   // this rank was asked to stop
}

const (
	flagFailed = 1 << iota
	flagStopping
)

func (h head) bytes() []byte {
	b := make([]byte, headSize)
	binary.LittleEndian.PutUint64(b, h.number)
	binary.LittleEndian.PutUint64(b[8:], h.plan)
	binary.LittleEndian.PutUint32(b[16:], h.text)
	if h.failed {
		b[20] |= flagFailed
	}
	if h.stopping {
		b[20] |= flagStopping
	}
	return b
}

func headOf(b []byte) head {
	return head{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:]),
		b[20]&flagFailed != 0, b[20]&flagStopping != 0}
}

// plan is the text of a call: its operation, and a line for each tensor. All ranks must have the
// same.
type plan struct {
	op      string
	tensors []string
}

func (p plan) text() string { return strings.Join(append([]string{p.op}, p.tensors...), "\n") }

// meet begins a call: all ranks exchange heads and compare them. fault is this rank's error, if it
// cannot take part; it becomes all ranks' error.
func (w *World) meet(p plan, fault error) error {
	text := p.text()
	h := head{number: w.enter(p.op), plan: xxhash.Sum64String(text), failed: fault != nil, stopping: w.asked.Load()}
	if fault != nil {
		text = fault.Error()
	}
	h.text = uint32(len(text))
	heads, err := w.heads(h)
	if err != nil {
		return err
	}
	same, failed := true, -1
	for r, o := range heads {
		same = same && o.number == h.number && o.plan == h.plan
		if o.failed && failed < 0 {
			failed = r
		}
		if o.stopping {
			w.stopping.Store(true)
		}
	}
	if failed < 0 && same {
		return nil
	}
	texts, err := w.texts(heads, text)
	switch {
	case err != nil:
		return err
	case failed == w.info.Rank:
		return w.fail(w.ownFault(fault))
	case failed >= 0:
		return w.fail(&RankError{Rank: failed, Host: w.host(failed), State: Failed, Call: w.where().String(), Err: textError(texts[failed])})
	}
	return w.fail(differ(difference(h.number, heads, texts)))
}

type textError string

func (e textError) Error() string { return string(e) }

// heads gathers the heads of all ranks.
func (w *World) heads(h head) ([]head, error) {
	n := w.info.Size
	at := make([]int, n+1)
	for r := range at {
		at[r] = r * headSize
	}
	all, err := w.gather(h.bytes(), at)
	if err != nil {
		return nil, err
	}
	heads := make([]head, n)
	for r := range heads {
		heads[r] = headOf(all[at[r]:at[r+1]])
	}
	return heads, nil
}

// texts gathers texts whose lengths the heads say.
func (w *World) texts(heads []head, text string) ([]string, error) {
	at := make([]int, len(heads)+1)
	for r, h := range heads {
		at[r+1] = at[r] + int(h.text)
	}
	all, err := w.gather([]byte(text), at)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(heads))
	for r := range texts {
		texts[r] = string(all[at[r]:at[r+1]])
	}
	return texts, nil
}

// difference says where the plans of the ranks first differ, and which ranks have what.
func difference(number uint64, heads []head, texts []string) string {
	plans := make([][]string, len(texts))
	most, op := 0, ""
	for r, t := range texts {
		plans[r] = strings.Split(t, "\n")
		most = max(most, len(plans[r]))
	}
	op = plans[0][0]
	for line := range most {
		has := make([]string, len(plans))
		for r, p := range plans {
			has[r] = "nothing more"
			if line < len(p) {
				has[r] = p[line]
			}
		}
		if !equal(has) {
			if line > 0 {
				return fmt.Sprintf("call %d, %s: %s", number, op, who(has, "has", "have"))
			}
			return fmt.Sprintf("call %d: %s", number, who(has, "calls", "call"))
		}
	}
	numbers := make([]string, len(heads))
	for r, h := range heads {
		numbers[r] = fmt.Sprintf("call %d", h.number)
	}
	return who(numbers, "is at", "are at")
}

func equal(has []string) bool {
	return !slices.ContainsFunc(has, func(s string) bool { return s != has[0] })
}

// who lists which ranks have what.
func who(has []string, one, many string) string {
	var groups []string
	for r, what := range has {
		if slices.Index(has, what) < r {
			continue
		}
		var ranks []string
		for k := range has {
			if has[k] == what {
				ranks = append(ranks, fmt.Sprint(k))
			}
		}
		if len(ranks) == 1 {
			groups = append(groups, fmt.Sprintf("rank %s %s %s", ranks[0], one, what))
		} else {
			groups = append(groups, fmt.Sprintf("ranks %s %s %s", strings.Join(ranks, ", "), many, what))
		}
	}
	return strings.Join(groups, "; ")
}
