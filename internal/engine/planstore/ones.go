package planstore

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// A dimension of 1 may broadcast, or may just be equal to another dimension of 1. The trie handles
// both: the plan of any batch serves a batch of one. But the relative form of a batch of one
// differs, so a lookup in a bundle does not find that plan. Therefore segments with such
// dimensions are looked up a second time, by a form that leaves open which dimensions broadcast.
// The plan found is added to the trie in the form for which it was made: a plan rebuilt for a
// batch of one would serve no other batch.

// looseForm returns the form of a segment without the facts that come from its sizes. ones reports
// that these facts allow dimensions of 1 to be taken either way. ok is false for an invalid form.
func looseForm(form string) (loose string, ones, ok bool) {
	if len(form) < EndBytes {
		return "", false, false
	}
	b := []byte(form[:EndBytes])
	b, ones, ok = queue.AppendLoose(b, []byte(form[EndBytes:]))
	return string(b), ones, ok
}

// looseKey returns the loose form of a bundled plan's key.
func looseKey(form string) (loose string, ok bool) {
	loose, _, ok = looseForm(form)
	return loose, ok
}

// recallOnes finds a plan for the segment in a bundle, under a form other than the segment's own.
func (q *Query) recallOnes(wants []int) (*leaf, *Known) {
	sources := q.finder.Sources()
	if len(sources) == 0 {
		return nil, nil
	}
	loose, ones, ok := looseForm(q.form())
	if !ok || !ones {
		return nil, nil
	}
	for i := range sources {
		src := &sources[i]
		for _, at := range src.Places(looseKey)[loose] {
			leaf, e, err := q.recallLoose(src, at, wants)
			if err != nil {
				q.finder.RefuseBundled(src, lookup.KindPlan, err)
			}
			if e != nil {
				q.finder.Bundled.Add(1)
				q.OnCache(plancache.Event{Kind: lookup.KindPlan, Outcome: plancache.Bundled})
				return leaf, e
			}
		}
	}
	return nil, nil
}

// recallLoose makes a plan from one entry of a bundle, if one of its records serves the segment.
func (q *Query) recallLoose(src *lookup.Source, at int, wants []int) (*leaf, *Known, error) {
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
		model, keys, err := q.model(r.Segment)
		if err != nil {
			return nil, nil, err
		}
		if keys == nil || q.knows(keys) {
			continue
		}
		e, err := q.rebuild(r, model, false)
		if err != nil {
			return nil, nil, err
		}
		if e == nil {
			continue
		}
		if !e.Plan.Check(q.Seg) {
			q.Retired(e)
			continue
		}
		want(q.Seg, r.Wants)
		return q.addAs(keys, e), e, nil
	}
	return nil, nil, nil
}

// knows reports that the trie already has plans for these keys. If they do not serve the segment,
// it must be explored, so that its plan is found the next time.
func (q *Query) knows(keys []queue.Key) bool {
	at := q.Trie.Root()
	for i := range keys {
		at = q.Trie.Step(at, &keys[i])
	}
	return q.Trie.Find(at, q.End) != nil
}

// model returns the queued segment with the sizes of a text, and its keys. The keys are nil if
// plans made for the model may not serve the segment. Only sizes are taken from the text, and the
// operations must allow them.
func (q *Query) model(text string) (*segment.Segment, []queue.Key, error) {
	prog, err := ir.ParseGraph(renumbered(text))
	if err != nil {
		return nil, nil, err
	}
	nodes := slices.DeleteFunc(prog.Nodes, func(n ir.Node) bool { return !n.HasResult() })
	if len(nodes) != len(q.Seg.Nodes) || len(prog.Inputs)+len(nodes) != len(q.Seg.Tensors) {
		return nil, nil, errOtherSegment
	}
	w := queue.Queue[struct{}]{Interner: &q.Attrs, Scalars: q.Scalars}
	inputs := prog.Inputs
	for id := range q.Seg.Tensors {
		t := &q.Seg.Tensors[id]
		if t.Def < 0 {
			w.Input(struct{}{}, t.DT, queue.NewForm(inputs[0].Shape))
			inputs = inputs[1:]
			continue
		}
		n := q.Seg.Nodes[t.Def]
		n.Shape, n.Attr = nodes[t.Def].Shape, nodes[t.Def].Attr
		w.Append(&n, queue.NewForm(n.Shape), struct{}{})
	}
	var keys []queue.Key
	for i, node := range q.Entries {
		k := node.Key
		if node.Node >= 0 {
			k = w.Items[node.Node].Key
		}
		if !queue.Legal(&k, &q.Entries[i].Key) {
			return nil, nil, nil
		}
		keys = append(keys, k)
	}
	m := cloneSegment(q.Seg)
	list, out := w.Nodes()
	m.Nodes, m.Out = slices.Clone(list), slices.Clone(out)
	for id := range m.Tensors {
		m.Tensors[id].Shape = w.Slots[id].Form.Shape
	}
	return &m, keys, nil
}

var errOtherSegment = errors.New("the text beside a plan describes another segment")

// renumbered returns the text of a segment with its tensors renumbered in the order of their
// lines, as the text form of programs requires.
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
