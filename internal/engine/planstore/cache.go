package planstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Plans outlive the process in a cache on disk. Opening a device reads nothing. A segment that
// has no plan in the trie is looked up on disk by its relative form, and explored only if that
// fails. So a process pays only for the plans that it uses, however large the cache is.

// saving is a plan that waits to be written to disk.
type saving struct {
	key   string // the cache key of its segment
	known *Known
	wants []int
}

// form returns the part of the segment's key that follows the scope.
func (q *Query) form() string {
	b := appendEnd(nil, q.End)
	for i := range q.Entries {
		b = q.Attrs.AppendForm(b, &q.Entries[i].Key)
	}
	return string(b)
}

func (p *Store) key(form string) string { return plancache.JoinKey(p.finder.Scope, form) }

// EndBytes is the length of a segment's end, with which a form begins.
const EndBytes = 6

func appendEnd(b []byte, end segment.End) []byte {
	b = append(b, byte(end.Reason), flag(end.All))
	return append(b, byte(end.ID), byte(end.ID>>8), byte(end.ID>>16), byte(end.ID>>24))
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// recall looks for a plan of the segment in the bundles in use and then in the cache. The plan
// must write the costly results in wants. recall adds it to the trie, or returns nil. It prefers
// plans whose class contains the segment; with suited it accepts no others.
func (q *Query) recall(wants []int, suited bool) (*leaf, *Known) {
	from, sources := q.finder, q.finder.Sources()
	if from.Cache == nil && len(sources) == 0 {
		return nil, nil
	}
	form := q.form()
	take := func(value []byte, refuse func(error)) *Known {
		records, err := fusion.ParseRecords(string(value))
		if err != nil {
			refuse(err)
			return nil
		}
		return q.choose(records, wants, suited, refuse)
	}
	for i := range sources {
		for _, scope := range sources[i].Plans {
			if value, ok := from.FromBundle(&sources[i], lookup.KindPlan, scope, form); ok {
				if e := take(value, func(err error) { from.RefuseBundled(&sources[i], lookup.KindPlan, err) }); e != nil {
					return q.Add(e), e
				}
			}
		}
	}
	if value, ok := from.Cache.Get(lookup.KindPlan, q.key(form)); ok {
		if e := take(value, func(err error) { from.Cache.Refuse(lookup.KindPlan, err) }); e != nil {
			return q.Add(e), e
		}
	}
	return nil, nil
}

// choose makes a plan from one of several records, by the rules of recall.
func (q *Query) choose(records []fusion.Record, wants []int, suited bool, refuse func(error)) *Known {
	bad := make([]bool, len(records))
	for _, suits := range []bool{true, false} {
		if suited && !suits {
			break
		}
		for i := len(records) - 1; i >= 0; i-- { // later records write results that earlier ones lack
			if bad[i] || slices.ContainsFunc(wants, func(id int) bool { return !slices.Contains(records[i].Wants, id) }) {
				continue
			}
			e, err := q.rebuild(&records[i], q.Seg, suits)
			if err != nil {
				refuse(err)
				bad[i] = true
				continue
			}
			if e != nil {
				return e
			}
		}
	}
	return nil
}

// rebuild makes a plan from a record and checks it against the segment as far as possible. It
// returns nil if the plan's guards do not hold or, with suits, if the segment is not in its class.
func (q *Query) rebuild(r *fusion.Record, seg *segment.Segment, suits bool) (*Known, error) {
	lives := make([]segment.Life, 0, len(r.Wants))
	for _, id := range r.Wants {
		if id >= len(seg.Tensors) {
			return nil, fmt.Errorf("a plan names tensor %d of %d", id, len(seg.Tensors))
		}
		lives = append(lives, seg.Tensors[id].Life)
	}
	want(seg, r.Wants)
	plan, err := q.ReadPlan(r, seg, suits)
	if plan != nil {
		var e *Known
		if e, err = q.newEntry(plan, seg); err == nil {
			e.text, e.wants = r.Segment, r.Wants
			return e, nil
		}
	}
	for i, id := range r.Wants {
		seg.Tensors[id].Life = lives[i]
	}
	return nil, err
}

// ReadPlan reads a plan and makes it again from the segment. It returns nil without an error if
// the plan is for other scalars or sizes or, with suits, for another class. A panic here is caused
// by what was read, so it becomes an error.
func (p *Store) ReadPlan(r *fusion.Record, seg *segment.Segment, suits bool) (plan *fusion.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			plan, err = nil, fmt.Errorf("reading a plan: %v", r)
		}
	}()
	q, err := fusion.ParsePlan(r.Plan)
	if err != nil {
		return nil, err
	}
	if err := q.Verify(seg); err != nil {
		return nil, err
	}
	if !q.Check(seg) || suits && !fusion.Suits(q.Sizes, seg) {
		return nil, nil
	}
	if x, ok := p.Driver.(runtime.Expecter); ok { // the device builds the expected kernels while the plan is made again
		kernels := make([]runtime.Kernel, len(q.Steps))
		for i := range q.Steps {
			kernels[i] = q.Steps[i].Kernel
		}
		drop := x.Expect(kernels)
		defer func() {
			if plan == nil {
				drop()
			}
		}()
	}
	if q, err = q.Replay(seg, p.Caps, fusion.Options{Mode: r.Mode}); err != nil {
		return nil, err
	}
	if !q.Check(seg) {
		return nil, nil
	}
	return q, nil
}

// remember saves a new plan of the queued segment, in the background. It saves only plans of the
// mode in which the device was opened: other plans are fallbacks, or are used until the best one
// is found.
func (q *Query) remember(e *Known) {
	if q.finder.Cache != nil && e.Plan.Mode == q.Mode() {
		q.save(saving{q.key(q.form()), e, e.wants})
	}
}

// maxSaves limits the plans that wait to be saved. Writing a file takes milliseconds, in which a
// program that never repeats itself makes ten plans.
const maxSaves = 1024

var errSaves = errors.New("a plan is not saved: too many plans wait for the disk")

// save writes a plan in the background.
func (p *Store) save(sv saving) {
	if !p.saves.Add(sv) {
		p.finder.Cache.Dropped(lookup.KindPlan, errSaves)
	}
}

// write adds a plan to those of its key. If another process writes the same key at this moment,
// one of the two plans is lost; it is made again when it is needed.
func (p *Store) write(sv saving) {
	r := sv.known.Record(sv.wants)
	var records []fusion.Record
	if value, ok := p.finder.Cache.Peek(lookup.KindPlan, sv.key); ok {
		records, _ = fusion.ParseRecords(string(value)) // an unreadable value is replaced
	}
	for i := range records {
		if records[i].Same(&r) {
			return
		}
	}
	records = slices.DeleteFunc(records, func(have fusion.Record) bool { // the same plan of another class is replaced
		p, err := fusion.ParsePlan(have.Plan)
		return err == nil && slices.Equal(have.Wants, r.Wants) && p.Same(sv.known.Plan)
	})
	records = append(records, r)
	records = records[max(0, len(records)-fusion.MaxRecords):]
	p.finder.Cache.Put(lookup.KindPlan, sv.key, []byte(fusion.FormatRecords(records))) // the cache counts failures
}

// Record returns the form in which a plan that writes the costly results in wants is saved.
func (e *Known) Record(wants []int) fusion.Record {
	return fusion.Record{Mode: e.mode(), Wants: wants, Segment: e.text, Plan: e.planText()}
}

// Flush blocks until all plans to save are on disk.
func (p *Store) Flush() { p.saves.Wait() }
