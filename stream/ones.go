package stream

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// A dimension of 1 may be taken for one that broadcasts and for one that is equal
// to another, so a batch of one is served by the plans of any batch, where the
// trie has them. Its own form is another one, though, and by that it is not
// found in a bundle. So segments with such dimensions are looked up a second
// time by a form that leaves open which dimensions broadcast, and what is found
// is put into the trie in the form that it was made for: a plan that was made
// again for a batch of one would serve nothing else.

// loosely indexes the plans of a source by their loose forms. It is made when it
// is first asked for, from keys alone.
type loosely struct {
	once  sync.Once
	plans map[string][]int // places in the bundle
}

func (src *source) loosely(form string) []int {
	x := src.loose
	x.once.Do(func() {
		x.plans = map[string][]int{}
		for _, scope := range src.plans {
			for i, key := range src.Keys(kindPlan, scope) {
				if loose, _, ok := looseForm(key); ok {
					x.plans[loose] = append(x.plans[loose], i)
				}
			}
		}
	})
	return x.plans[form]
}

// looseForm is the form of a segment without what its sizes say, and whether
// those say that dimensions of 1 may be taken either way. It is not ok where the
// form is none.
func looseForm(form string) (loose string, ones, ok bool) {
	if len(form) < endBytes {
		return "", false, false
	}
	b := []byte(form[:endBytes])
	b, ones, ok = queue.AppendLoose(b, []byte(form[endBytes:]))
	return string(b), ones, ok
}

// recallOnes finds a plan that serves the segment, in a bundle that has none of
// its own form. The lock is held.
func (s *Stream) recallOnes(seg *segment.Segment, end segment.End, wants []int) (*leaf, *entry) {
	d := s.dev
	sources := d.bundles.sources()
	if len(sources) == 0 {
		return nil, nil
	}
	loose, ones, ok := looseForm(s.planForm(end))
	if !ok || !ones {
		return nil, nil
	}
	for i := range sources {
		src := &sources[i]
		for _, at := range src.loosely(loose) {
			leaf, e, err := s.recallLoose(src, at, seg, end, wants)
			if err != nil {
				d.refuseBundled(src, kindPlan, err)
			}
			if e != nil {
				d.bundles.bundled.Add(1)
				d.onCache(plancache.Event{Kind: kindPlan, Outcome: plancache.Bundled})
				return leaf, e
			}
		}
	}
	return nil, nil
}

// recallLoose takes a plan of one entry of a bundle, if there is one that serves
// the segment.
func (s *Stream) recallLoose(src *source, at int, seg *segment.Segment, end segment.End, wants []int) (*leaf, *entry, error) {
	found, err := src.Entry(at)
	if err != nil {
		return nil, nil, err
	}
	records, err := fusion.ParseRecords(string(found.Value))
	if err != nil {
		return nil, nil, err
	}
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		if slices.ContainsFunc(wants, func(id int) bool { return !slices.Contains(r.Wants, id) }) {
			continue
		}
		model, keys, err := s.model(r.Segment, seg)
		if err != nil {
			return nil, nil, err
		}
		if keys == nil || s.knows(keys, end) {
			continue
		}
		e, err := s.rebuild(r, model, false)
		if err != nil {
			return nil, nil, err
		}
		if e == nil {
			continue
		}
		if !e.plan.Check(seg) {
			s.dev.retire(e)
			continue
		}
		want(seg, r.Wants)
		return s.storeAs(keys, e, end), e, nil
	}
	return nil, nil, nil
}

// knows reports that the trie has plans for these keys already. What they are
// not found for has to be explored, to be found the next time.
func (s *Stream) knows(keys []queue.Key, end segment.End) bool {
	at := s.dev.trie.Root()
	for i := range keys {
		at = s.dev.trie.Step(at, &keys[i])
	}
	return s.dev.trie.Find(at, end) != nil
}

// model is the queued segment with the sizes that a text says, and its keys; no
// keys where plans made for it may not serve the segment. Nothing but sizes is
// taken from the text, and those have to be ones that the ops allow.
func (s *Stream) model(text string, seg *segment.Segment) (*segment.Segment, []queue.Key, error) {
	prog, err := ir.ParseProgram(renumbered(text))
	if err != nil {
		return nil, nil, err
	}
	nodes := slices.DeleteFunc(prog.Nodes, func(n ir.Node) bool { return !n.HasResult() })
	if len(nodes) != len(seg.Nodes) || len(prog.Inputs)+len(nodes) != len(seg.Tensors) {
		return nil, nil, errOtherSegment
	}
	q := queue.Queue[struct{}]{Interner: &s.dev.attrs, Scalars: s.q.Scalars}
	inputs := prog.Inputs
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Def < 0 {
			q.Input(struct{}{}, t.DT, queue.NewForm(inputs[0].Shape))
			inputs = inputs[1:]
			continue
		}
		n := seg.Nodes[t.Def]
		n.Shape, n.Attr = nodes[t.Def].Shape, nodes[t.Def].Attr
		q.Append(&n, queue.NewForm(n.Shape), struct{}{})
	}
	var keys []queue.Key
	for i, node := range s.q.Entries {
		k := node.Key
		if node.Node >= 0 {
			k = q.Entries[node.Node].Key
		}
		if !queue.Legal(&k, &s.q.Entries[i].Key) {
			return nil, nil, nil
		}
		keys = append(keys, k)
	}
	m := cloneSegment(seg)
	list, out := q.Nodes()
	m.Nodes, m.Out = slices.Clone(list), slices.Clone(out)
	for id := range m.Tensors {
		m.Tensors[id].Shape = q.Slots[id].Form.Shape
	}
	return &m, keys, nil
}

var errOtherSegment = errors.New("the text beside a plan is of another segment")

// renumbered is the text of a segment with its tensors numbered in the order in
// which they are listed, as texts of programs have them.
func renumbered(text string) string {
	ids := map[string]string{}
	for line := range strings.Lines(text) {
		if id, _, ok := strings.Cut(line, " = "); ok {
			ids[id] = "%" + strconv.Itoa(len(ids))
		}
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for word := range strings.FieldsSeq(line) {
			if id, ok := ids[word]; ok {
				word = id
			}
			b.WriteString(word + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
