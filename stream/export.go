package stream

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
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// PlanFilter says what ExportPlans writes. The zero value is for what this
// process used so far, on all its open devices.
type PlanFilter struct {
	Device string    // a driver's name; "": of all
	Cache  string    // a cache directory of which everything is written, too; "": none
	Since  time.Time // of the directory's entries only those used since; they know that to the hour
}

// ErrNoPlans says that there is nothing to export.
var ErrNoPlans = errors.New("no plans to export: no open device has run anything with them")

// ExportPlans writes a bundle of plans and tunings. It waits for searches for
// better plans, so that those are in it.
func ExportPlans(w io.Writer, f PlanFilter) error {
	process.Lock()
	devices := openDevices()
	process.Unlock()
	return exportPlans(w, f, devices)
}

func exportPlans(w io.Writer, f PlanFilter, devices []*Device) error {
	x := export{filter: f, plans: map[string][]fusion.Record{}, tunings: map[string]string{}, notes: map[string]plancache.Entry{}}
	for _, d := range devices {
		if x.wants(d.caps.Name) {
			d.search.wait()
			x.addPlans(d)
			x.addTunings(&d.tune)
			x.addNotes(d)
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

// export is a bundle in the making.
type export struct {
	filter  PlanFilter
	plans   map[string][]fusion.Record // by whole key, as the cache would have them
	tunings map[string]string
	notes   map[string]plancache.Entry // of devices, by kind and key
}

func (x *export) wants(device string) bool {
	return x.filter.Device == "" || x.filter.Device == device
}

// addPlans takes what the trie holds: all that the device has used lately. As on
// disk, only plans of the mode that the device was opened in are remembered.
func (x *export) addPlans(d *Device) {
	mode := fusionMode[d.opts.Fusion]
	d.trie.All(func(keys []queue.Key, end segment.End, plans []*entry) {
		form := appendEnd(nil, end)
		for i := range keys {
			form = d.attrs.AppendForm(form, &keys[i])
		}
		key := d.plans.key(string(form))
		for _, e := range plans {
			if e.mode() == mode {
				x.plans[key] = addRecord(x.plans[key], e.record(e.wants))
			}
		}
	})
}

// addRecord puts a record behind the others of its key: later ones are tried
// first.
func addRecord(records []fusion.Record, r fusion.Record) []fusion.Record {
	if slices.ContainsFunc(records, func(have fusion.Record) bool { return have.Same(&r) }) {
		return records
	}
	records = append(records, r)
	return records[max(0, len(records)-fusion.MaxRecords):]
}

func (x *export) addTunings(t *tuner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, known := range t.known {
		if r := known.ranked.Load(); r != nil {
			x.addTuning(key, r.table.Text())
		}
	}
}

// addTuning adds a table, unless there is one already in which more was timed.
func (x *export) addTuning(key, text string) {
	if have := x.tunings[key]; have == "" || untimed(have) {
		x.tunings[key] = text
	}
}

// untimed reports what is no table, or says only why there are no times.
func untimed(text string) bool {
	t, err := autotune.Parse(text)
	return err != nil || t.Untimed()
}

// addNotes takes what a device notes of what it ran.
func (x *export) addNotes(d *Device) {
	if n, ok := d.drv.(runtime.Noter); ok {
		for _, note := range n.Notes() {
			x.addNote(plancache.Entry{Kind: note.Kind, Key: note.Key, Value: []byte(note.Value)})
		}
	}
}

// addNote adds a note of what ran, unless there is one with its key: what ran in
// this process comes first, and a directory may hold anything.
func (x *export) addNote(e plancache.Entry) {
	key := e.Kind + "\n" + e.Key
	if _, ok := x.notes[key]; !ok {
		x.notes[key] = e
	}
}

// addCache takes what a directory holds, before what the process itself used.
// Files that are no entries, plans of another version and of ops that are others
// by now are of no use to anybody.
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
		if !Bundled(f.Kind()) || f.Used.Before(x.filter.Since) {
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
		case kindPlan:
			x.addForeign(e, scope)
		case runtime.KindKernel:
			e.Value = nil // it says where
			x.addNote(e)
		case runtime.KindShader:
			x.addNote(e)
		case kindTuning:
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
		es = append(es, plancache.Entry{Kind: kindPlan, Key: key, Value: []byte(fusion.FormatRecords(x.plans[key]))})
	}
	for _, key := range slices.Sorted(maps.Keys(x.tunings)) {
		es = append(es, plancache.Entry{Kind: kindTuning, Key: key, Value: []byte(x.tunings[key])})
	}
	for _, note := range slices.Sorted(maps.Keys(x.notes)) {
		es = append(es, x.notes[note])
	}
	return es
}
