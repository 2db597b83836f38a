package planstore

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// PlanFilter selects what ExportPlans writes. The zero value selects all that this process has
// used, on all of its open devices.
type PlanFilter struct {
	Device string    // a driver's name; "" for all
	Cache  string    // a cache directory that is exported as well; "" for none
	Since  time.Time // of the directory, only entries used since then; their times are exact to the hour
}

// ErrNoPlans says that there is nothing to export.
var ErrNoPlans = errors.New("no plans to export: no open device has run any")

// Exporting is a device whose plans are exported.
type Exporting struct {
	*Store
	Tune *autotune.Tuner
}

// ExportPlans writes a bundle of the plans and tunings of some devices. It first waits for
// searches in progress, so that the bundle holds their plans.
func ExportPlans(w io.Writer, f PlanFilter, devices []Exporting) error {
	x := export{filter: f, plans: map[string][]fusion.Record{}, tunings: map[string]string{}, notes: map[string]plancache.Entry{}}
	for _, d := range devices {
		if x.wants(d.Caps.Name) {
			d.Search.Wait()
			x.addPlans(d.Store)
			x.addTunings(d.Tune)
			x.addNotes(d.Base)
		}
	}
	if f.Cache != "" {
		if err := x.addCache(); err != nil {
			return err
		}
	}
	entries := x.entries()
	if len(entries) == 0 {
		return ErrNoPlans
	}
	return plancache.WriteBundle(w, "plans version "+fusion.Version(), entries)
}

// export collects the entries of a bundle.
type export struct {
	filter  PlanFilter
	plans   map[string][]fusion.Record // by whole key, in the order of the cache
	tunings map[string]string
	notes   map[string]plancache.Entry // of devices, by kind and key
}

func (x *export) wants(device string) bool {
	return x.filter.Device == "" || x.filter.Device == device
}

// addPlans adds the plans of the trie, which are those that the device used recently. As on disk,
// only plans of the mode in which the device was opened are exported.
func (x *export) addPlans(p *Store) {
	mode := p.Mode()
	p.Trie.All(func(keys []queue.Key, end segment.End, plans []*Known) {
		form := appendEnd(nil, end)
		for i := range keys {
			form = p.Attrs.AppendForm(form, &keys[i])
		}
		key := p.key(string(form))
		for _, e := range plans {
			if e.mode() == mode {
				x.plans[key] = addRecord(x.plans[key], e.Record(e.wants))
			}
		}
	})
}

// addRecord appends a record to those of its key; later records are tried first.
func addRecord(records []fusion.Record, r fusion.Record) []fusion.Record {
	if slices.ContainsFunc(records, func(have fusion.Record) bool { return have.Same(&r) }) {
		return records
	}
	records = append(records, r)
	return records[max(0, len(records)-fusion.MaxRecords):]
}

func (x *export) addTunings(t *autotune.Tuner) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for key, known := range t.Known {
		if r := known.Ranked.Load(); r != nil {
			x.addTuning(key, r.Table.Text())
		}
	}
}

// addTuning adds a table, unless there is already one with times.
func (x *export) addTuning(key, text string) {
	if have := x.tunings[key]; have == "" || untimed(have) {
		x.tunings[key] = text
	}
}

// untimed reports a text that is not a table, or a table without times.
func untimed(text string) bool {
	t, err := autotune.Parse(text)
	return err != nil || t.Untimed()
}

// addNotes adds a device's notes on what it ran.
func (x *export) addNotes(d *device.Base) {
	if n, ok := d.Driver.(runtime.Noter); ok {
		for _, note := range n.Notes() {
			x.addNote(plancache.Entry{Kind: note.Kind, Key: note.Key, Value: []byte(note.Value)})
		}
	}
}

// addNote adds a note unless there is one with its key. Notes of this process come first, since a
// directory may hold anything.
func (x *export) addNote(e plancache.Entry) {
	key := e.Kind + "\n" + e.Key
	if _, ok := x.notes[key]; !ok {
		x.notes[key] = e
	}
}

// addCache adds the contents of a directory. This process's own plans come after them in a key's
// list, so they are tried first. It skips files that are not entries, plans of other versions,
// and plans with operations that have changed since.
func (x *export) addCache() error {
	c, err := plancache.OpenExisting(x.filter.Cache)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no cache in %s", x.filter.Cache)
	} else if err != nil {
		return err
	}
	defer c.Close()
	files, err := c.List()
	if err != nil {
		return err
	}
	for _, f := range files {
		if !lookup.Bundled(f.Kind()) || f.Used.Before(x.filter.Since) {
			continue
		}
		e, err := c.Read(f.Name)
		if err != nil {
			continue
		}
		scope, _ := plancache.SplitKey(e.Key)
		if !x.wants(fusion.FingerprintField(scope, "device")) {
			continue
		}
		switch e.Kind {
		case lookup.KindPlan:
			x.addForeign(e, scope)
		case runtime.KindShader:
			x.addNote(e)
		case lookup.KindTuning:
			x.addTuning(e.Key, string(e.Value))
		}
	}
	return nil
}

func (x *export) addForeign(e plancache.Entry, scope string) {
	records, err := fusion.ParseRecords(string(e.Value))
	if err != nil || fusion.Foreign(scope) != "" {
		return
	}
	_, form := plancache.SplitKey(e.Key)
	records = slices.DeleteFunc(records, func(r fusion.Record) bool { return Outdated(form, r.Segment) != "" })
	if len(records) == 0 && len(x.plans[e.Key]) == 0 {
		return
	}
	for _, r := range x.plans[e.Key] {
		records = addRecord(records, r)
	}
	x.plans[e.Key] = records
}

func (x *export) entries() []plancache.Entry {
	var es []plancache.Entry
	for _, key := range slices.Sorted(maps.Keys(x.plans)) {
		es = append(es, plancache.Entry{Kind: lookup.KindPlan, Key: key, Value: []byte(fusion.FormatRecords(x.plans[key]))})
	}
	for _, key := range slices.Sorted(maps.Keys(x.tunings)) {
		es = append(es, plancache.Entry{Kind: lookup.KindTuning, Key: key, Value: []byte(x.tunings[key])})
	}
	for _, note := range slices.Sorted(maps.Keys(x.notes)) {
		es = append(es, x.notes[note])
	}
	return es
}
