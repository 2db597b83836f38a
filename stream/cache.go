package stream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Plans outlive the process in a cache on disk. Nothing is read when a device
// is opened: a segment that the trie has no plan for is looked up by its
// relative form, and only if that fails is it explored. So a process pays for
// the plans that it uses, whatever the cache holds.

// kindPlan is the kind of the entries that hold plans.
const kindPlan = "plan"

// planStore is a device's side of the cache.
type planStore struct {
	cache *plancache.Cache // nil: none
	scope string           // of every key: what plans depend on besides their segment
	saves background.Queue[saving]
}

// saving is a plan on its way to the disk.
type saving struct {
	key   string // of its segment
	entry *entry
	wants []int
}

// openCache opens the cache that the options name. A device works without one:
// what is wrong is told and counted.
func (d *Device) openCache() {
	dir := d.opts.Cache
	if dir == "" || dir == plancache.Off {
		return
	}
	c, err := plancache.Open(dir, plancache.Options{Limit: d.opts.CacheLimit, OnEvent: d.onCache})
	if err != nil {
		ev := plancache.Event{Outcome: plancache.Failed, Err: err}
		if refused := (*plancache.RefusedError)(nil); errors.As(err, &refused) {
			ev.Outcome = plancache.Refused
		}
		d.noCache = ev.Outcome
		d.onCache(ev)
		return
	}
	d.cache = c
}

// startPlans is called once the device's caps are known.
func (d *Device) startPlans() {
	p := &planStore{cache: d.cache, scope: fusion.Fingerprint(d.caps, fusionMode[d.opts.Fusion])}
	p.saves.Do, p.saves.Limit = p.write, maxSaves
	d.plans = p
}

// cacheStats are the counters of the cache, also of one that could not be opened,
// and of bundles.
func (d *Device) cacheStats() plancache.Stats {
	s := d.cache.Stats()
	d.bundles.count(&s)
	switch d.noCache {
	case plancache.Refused:
		s.Refused++
	case plancache.Failed:
		s.Failed++
	}
	return s
}

// planForm is what the key of the queued segment's plans has behind its scope.
// The lock is held.
func (s *Stream) planForm(end segment.End) string {
	b := appendEnd(nil, end)
	for i := range s.q.Entries {
		b = s.dev.attrs.AppendForm(b, &s.q.Entries[i].Key)
	}
	return string(b)
}

func (p *planStore) key(form string) string { return plancache.JoinKey(p.scope, form) }

// endBytes is how long the end of a segment is in a form, of which it is the
// beginning.
const endBytes = 6

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

// recall finds a plan for the segment in the bundles in use or in the cache, one
// that writes the dear results wanted, and puts it into the trie; nil if there is
// none. One whose class the segment is in goes first; with suited no other is
// taken. The lock is held.
func (s *Stream) recall(seg *segment.Segment, end segment.End, wants []int, suited bool) (*leaf, *entry) {
	d := s.dev
	p, sources := d.plans, d.bundles.sources()
	if p.cache == nil && len(sources) == 0 {
		return nil, nil
	}
	form := s.planForm(end)
	take := func(value []byte, refuse func(error)) *entry {
		records, err := fusion.ParseRecords(string(value))
		if err != nil {
			refuse(err)
			return nil
		}
		return s.choose(records, seg, wants, suited, refuse)
	}
	for i := range sources {
		for _, scope := range sources[i].plans {
			if value, ok := d.fromBundle(&sources[i], kindPlan, scope, form); ok {
				if e := take(value, func(err error) { d.refuseBundled(&sources[i], kindPlan, err) }); e != nil {
					return s.store(e, end), e
				}
			}
		}
	}
	if value, ok := p.cache.Get(kindPlan, p.key(form)); ok {
		if e := take(value, func(err error) { p.cache.Refuse(kindPlan, err) }); e != nil {
			return s.store(e, end), e
		}
	}
	return nil, nil
}

// choose makes an entry of one of several records: see recall.
func (s *Stream) choose(records []fusion.Record, seg *segment.Segment, wants []int, suited bool, refuse func(error)) *entry {
	bad := make([]bool, len(records))
	for _, suits := range []bool{true, false} {
		if suited && !suits {
			break
		}
		for i := len(records) - 1; i >= 0; i-- { // the later ones write what the earlier ones should have
			if bad[i] || slices.ContainsFunc(wants, func(id int) bool { return !slices.Contains(records[i].Wants, id) }) {
				continue
			}
			e, err := s.rebuild(&records[i], seg, suits)
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

// rebuild makes an entry of a record, checked against the segment as far as a
// plan can be; nil where its guards do not hold, or with suits its class does not.
func (s *Stream) rebuild(r *fusion.Record, seg *segment.Segment, suits bool) (*entry, error) {
	lives := make([]segment.Life, 0, len(r.Wants))
	for _, id := range r.Wants {
		if id >= len(seg.Tensors) {
			return nil, fmt.Errorf("a plan wants tensor %d of %d", id, len(seg.Tensors))
		}
		lives = append(lives, seg.Tensors[id].Life)
		if seg.Tensors[id].Life == segment.LifeDear {
			seg.Tensors[id].Life = segment.LifeWrite
		}
	}
	plan, err := s.dev.readPlan(r, seg, suits)
	if plan != nil {
		var e *entry
		if e, err = s.dev.newEntry(plan, seg); err == nil {
			e.text, e.wants = r.Segment, r.Wants
			return e, nil
		}
	}
	for i, id := range r.Wants {
		seg.Tensors[id].Life = lives[i]
	}
	return nil, err
}

// readPlan reads a plan and makes it again from the segment: nil without an error
// where it is one of other scalars or sizes, or with suits of another class. A panic here is the fault of what
// was read, of whatever kind it is.
func (d *Device) readPlan(r *fusion.Record, seg *segment.Segment, suits bool) (plan *fusion.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			plan, err = nil, fmt.Errorf("reading a plan: %v", r)
		}
	}()
	p, err := fusion.ParsePlan(r.Plan)
	if err != nil {
		return nil, err
	}
	if err := p.Verify(seg); err != nil {
		return nil, err
	}
	if !p.Check(seg) || suits && !fusion.Suits(p.Sizes, seg) {
		return nil, nil
	}
	if x, ok := d.drv.(runtime.Expecter); ok { // to build, while it is made again, what it should come to
		kernels := make([]runtime.Kernel, len(p.Steps))
		for i := range p.Steps {
			kernels[i] = p.Steps[i].Kernel
		}
		drop := x.Expect(kernels)
		defer func() {
			if plan == nil {
				drop()
			}
		}()
	}
	if p, err = p.Replay(seg, d.caps, fusion.Options{Mode: r.Mode}); err != nil {
		return nil, err
	}
	if !p.Check(seg) {
		return nil, nil
	}
	return p, nil
}

// remember saves a new plan of the queued segment, in the background. Only
// plans of the mode that the device was opened in are kept: others are what it
// falls back on, or stand in for the best one until that is found. The lock is held.
func (s *Stream) remember(e *entry, end segment.End) {
	d := s.dev
	if d.cache != nil && e.plan.Mode == fusionMode[d.opts.Fusion] {
		d.plans.save(saving{d.plans.key(s.planForm(end)), e, e.wants})
	}
}

// maxSaves bounds the plans that wait for the disk: a file takes it milliseconds, and
// a program that never repeats itself makes ten plans meanwhile.
const maxSaves = 1024

var errSaves = errors.New("a plan is not saved: too many wait for the disk")

// save has a plan written in the background.
func (p *planStore) save(sv saving) {
	if !p.saves.Add(sv) {
		p.cache.Dropped(kindPlan, errSaves)
	}
}

// write adds a plan to those of its key. If another process does the same at
// this moment one of the two is lost, and made again when it is wanted.
func (p *planStore) write(sv saving) {
	r := sv.entry.record(sv.wants)
	var records []fusion.Record
	if value, ok := p.cache.Peek(kindPlan, sv.key); ok {
		records, _ = fusion.ParseRecords(string(value)) // what cannot be read is replaced
	}
	for i := range records {
		if records[i].Same(&r) {
			return
		}
	}
	records = slices.DeleteFunc(records, func(have fusion.Record) bool { // one of another class is replaced
		p, err := fusion.ParsePlan(have.Plan)
		return err == nil && slices.Equal(have.Wants, r.Wants) && p.Same(sv.entry.plan)
	})
	records = append(records, r)
	records = records[max(0, len(records)-fusion.MaxRecords):]
	p.cache.Put(kindPlan, sv.key, []byte(fusion.FormatRecords(records))) // a failure is counted there
}

// record is what is remembered of an entry whose plan writes these dear results.
func (e *entry) record(wants []int) fusion.Record {
	return fusion.Record{Mode: e.mode(), Wants: wants, Segment: e.text, Plan: e.planText()}
}

// flush blocks until what was to be saved is on the disk.
func (p *planStore) flush() {
	if p == nil {
		return
	}
	p.saves.Wait()
}
