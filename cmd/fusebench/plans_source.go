package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
)

// A remembered is one entry of a cache or a bundle, or a file that is no valid entry.
type remembered struct {
	Name string
	Size int64     // in bytes
	Used time.Time // zero in a bundle
	plancache.Entry
	Err error // why it is no entry
}

// scope returns the device and version for which the entry was made.
func (r *remembered) scope() string {
	scope, _ := plancache.SplitKey(r.Key)
	return scope
}

// inBundle reports an entry of a bundle. Entries of caches know when they were used.
func (r *remembered) inBundle() bool { return r.Used.IsZero() }

// records returns the records of a plan's entry.
func (r *remembered) records() ([]fusion.Record, error) { return fusion.ParseRecords(string(r.Value)) }

// kindPlan is the kind of entries with plans.
const kindPlan = "plan"

// States of an entry.
const (
	stateOK      = "ok"
	stateForeign = "foreign" // valid, but of no use to this version
	stateDamaged = "damaged"
)

// A verdict is the state of an entry and, if that is not ok, the reason.
type verdict struct{ state, why string }

// contents has the checks for the contents of kinds of entries. Entries of other kinds may hold
// any bytes.
var contents = map[string]func(r *remembered) error{
	kindPlan: (*remembered).checkPlans,
	"tuning": func(r *remembered) error {
		_, err := autotune.Parse(string(r.Value))
		return err
	},
	runtime.KindShader: func(r *remembered) error {
		_, key := plancache.SplitKey(r.Key)
		_, _, err := shader.ReadNote(r.dialect(), key, string(r.Value))
		return err
	},
}

// foreigners say why entries of a kind are of no use to this version.
var foreigners = map[string]func(r *remembered) (why string){
	kindPlan: (*remembered).foreignPlans,
	lookup.KindKernel: func(*remembered) string {
		return "an earlier version noted kernels that ran; nothing reads these notes any more"
	},
	runtime.KindShader: func(r *remembered) string {
		d := r.dialect()
		switch {
		case d == nil:
			return "its language is unknown to this version"
		case !strings.Contains(r.scope(), " fingerprint "+d.Printer()+" "):
			return "another version printed it, this one is " + d.Printer()
		}
		return ""
	},
}

// dialects are the languages in which shaders are kept.
var dialects = []*shader.Dialect{wgsl.Dialect, glsl.Dialect, spirv.Dialect}

// dialect returns a shader's dialect, which its scope names, or nil if it is none of dialects.
func (r *remembered) dialect() *shader.Dialect {
	i := slices.IndexFunc(dialects, func(d *shader.Dialect) bool {
		return strings.Contains(r.scope(), " fingerprint "+d.Name+" ")
	})
	if i < 0 {
		return nil
	}
	return dialects[i]
}

// judge checks an entry.
func (r *remembered) judge() verdict {
	if r.Err != nil {
		return verdict{stateDamaged, r.Err.Error()}
	}
	if r.inBundle() && !lookup.Bundled(r.Kind) {
		return verdict{stateForeign, "bundles may not hold entries of its kind"}
	}
	if foreign := foreigners[r.Kind]; foreign != nil {
		if why := foreign(r); why != "" {
			return verdict{stateForeign, why}
		}
	}
	if check := contents[r.Kind]; check != nil {
		if err := check(r); err != nil {
			return verdict{stateDamaged, err.Error()}
		}
	}
	return verdict{state: stateOK}
}

// foreignPlans checks the scope and, if that is right, the segments, because an op may have
// changed since. It ignores contents that cannot be read; checkPlans reports those.
func (r *remembered) foreignPlans() string {
	if why := fusion.Foreign(r.scope()); why != "" {
		return why
	}
	_, form := plancache.SplitKey(r.Key)
	records, _ := r.records()
	for i := range records {
		if why := planstore.Outdated(form, records[i].Segment); why != "" {
			return why
		}
	}
	return ""
}

// checkPlans checks that every record has a valid plan.
func (r *remembered) checkPlans() error {
	records, err := r.records()
	if err == nil && len(records) == 0 {
		err = errors.New("it has no plans")
	}
	if err != nil {
		return err
	}
	for i := range records {
		if _, err := fusion.ParsePlan(records[i].Plan); err != nil {
			return fmt.Errorf("plan %d: %w", i, err)
		}
	}
	return nil
}

// entryKinds are the kinds of entries that this version writes.
var entryKinds = []string{kindPlan, "tuning", runtime.KindShader, "ahead", "binary", "compiler", "object", "peaks", "units"}

// readSource reads all entries of a cache directory or of a bundle file, by kind and name. If
// kinds are given, it reads only those.
func readSource(path string, kinds list) ([]remembered, error) {
	read := readCache
	if is, err := os.Stat(path); err == nil && is.Mode().IsRegular() {
		read = readBundle
	}
	all, err := read(path)
	for _, k := range kinds {
		if !slices.Contains(entryKinds, k) && !slices.ContainsFunc(all, func(r remembered) bool { return r.Kind == k }) {
			return nil, usageError("-kinds %q: want some of %s", k, strings.Join(entryKinds, ", "))
		}
	}
	all = slices.DeleteFunc(all, func(r remembered) bool { return len(kinds) > 0 && !slices.Contains(kinds, r.Kind) })
	slices.SortFunc(all, func(a, b remembered) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

// openCache opens the cache in a directory; it fails if there is none.
func openCache(dir string) (*plancache.Cache, error) {
	c, err := plancache.OpenExisting(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no cache in %s", dir)
	}
	return c, err
}

// readCache reads the entries of a directory. It leaves out files that vanish meanwhile.
func readCache(dir string) ([]remembered, error) {
	c, err := openCache(dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	files, err := c.List()
	if err != nil {
		return nil, err
	}
	var all []remembered
	for _, f := range files {
		e, err := c.Read(f.Name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			e = plancache.Entry{Kind: f.Kind()}
		}
		all = append(all, remembered{f.Name, f.Bytes, f.Used, e, err})
	}
	return all, nil
}

func readBundle(file string) ([]remembered, error) {
	data, err := sniff.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a bundle: %w", file, err)
	}
	var all []remembered
	for e, err := range b.All() {
		all = append(all, remembered{Name: e.Name(), Size: int64(len(e.Key) + len(e.Value)), Entry: e, Err: err})
	}
	return all, nil
}
