package nn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/safetensors"
)

// LoadOptions say how a file's entries become parameters. The zero value behaves like [Load]: all
// entries, unchanged.
type LoadOptions struct {
	// Cast converts floats to the parameter's dtype: a file of float16 or bfloat16 into float32
	// (exact), or the other way round (rounded). Integers are loaded as without Cast.
	Cast bool
	// Partial leaves parameters without an entry unchanged, and skips entries without a parameter.
	// A file without any matching entry is still [ErrMismatch], and so is an entry of another
	// shape.
	Partial bool
	// Rename maps an entry's name to the parameter's name; "" skips the entry. Two entries with one
	// new name are [ErrMismatch]. nil keeps all names. For a different prefix, [Under] is simpler.
	Rename func(entry string) string
	// Unmatched, if not nil, is called with Partial before anything is loaded. It receives the
	// parameters left unchanged and the skipped entries, both sorted.
	Unmatched func(parameters, entries []string)
}

// Load is the function [Load] with options, and returns its errors. Integers that do not fit the
// parameter's dtype are an error even with Partial.
func (o LoadOptions) Load(path string, parts ...any) error {
	all, err := collect(parts)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	from, err := o.match(all, f)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	free, err := all.hold()
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	defer free()
	for i, n := range all.found {
		if len(from[i]) == 0 {
			continue // allowed by Partial
		}
		t, err := read(f, from[i][0], n.Param)
		if err != nil {
			return err
		}
		for _, other := range from[i][1:] {
			if err := same(f, other, n.Param, t); err != nil {
				return fmt.Errorf("loading %s: %q and %q: %w", path, from[i][0], other, err)
			}
		}
		err = n.set(t)
		drop(t)
		if err != nil {
			return fmt.Errorf("loading %s: %q: %w", path, n.Name, err)
		}
	}
	return nil
}

// entries are the file's entries by the names of their parameters.
func (o LoadOptions) entries(f *safetensors.File) (map[string]safetensors.Info, []string, error) {
	infos := map[string]safetensors.Info{}
	var left []string
	for _, entry := range f.Names() {
		info, err := f.Info(entry)
		if err != nil {
			return nil, nil, err
		}
		name := entry
		if o.Rename != nil {
			name = o.Rename(entry)
		}
		if name == "" && o.Rename != nil {
			left = append(left, entry)
			continue
		}
		if first, twice := infos[name]; twice {
			return nil, nil, fmt.Errorf("%w: LoadOptions.Rename gives %q and %q the same name %q", ErrMismatch, first.Name, entry, name)
		}
		infos[name] = info
	}
	return infos, left, nil
}

// match finds the entries of each parameter; the first one is read.
func (o LoadOptions) match(w *walker, f *safetensors.File) (from [][]string, err error) {
	infos, left, err := o.entries(f)
	if err != nil {
		return nil, err
	}
	others := map[string][]string{} // by the first name
	for _, name := range slices.Sorted(maps.Keys(w.aliases)) {
		others[w.aliases[name]] = append(others[w.aliases[name]], name)
	}
	d := differences{opt: o, infos: infos}
	for _, n := range w.found {
		var entries []string
		for _, name := range append([]string{n.Name}, others[n.Name]...) {
			info, ok := infos[name]
			if !ok {
				continue
			}
			delete(infos, name)
			entries = append(entries, info.Name)
			d.compare(n, info)
		}
		if len(entries) == 0 {
			d.missing = append(d.missing, n.Name)
		}
		from = append(from, entries)
	}
	d.surplus = slices.Sorted(maps.Keys(infos))
	if err := d.err(len(w.found)); err != nil {
		return nil, err
	}
	if o.Partial && o.Unmatched != nil {
		for _, name := range d.surplus {
			left = append(left, infos[name].Name)
		}
		slices.Sort(left)
		slices.Sort(d.missing)
		o.Unmatched(d.missing, left)
	}
	return from, nil
}

// read loads an entry to the parameter's place, in its dtype.
func read(f *safetensors.File, name string, p *Param) (*millrace.Tensor, error) {
	info, err := f.Info(name)
	if err != nil {
		return nil, err
	}
	dt, place := p.t.DType(), p.t.Stream()
	if info.DType == dt {
		return f.TensorOn(place, name)
	}
	// Convert on the CPU, which has all dtypes.
	cpu, err := millrace.Open("cpu:threads=1,compile=off")
	if err != nil {
		return nil, err
	}
	defer cpu.Close()
	t, err := f.TensorOn(cpu, name)
	if err != nil {
		return nil, err
	}
	if info.DType.IsInt() {
		fits := t.Cast(dt).Cast(info.DType).Eq(t).All()
		if ok, err := millrace.Item[bool](fits); err != nil || !ok {
			return nil, cmp.Or(err, fmt.Errorf("%q: %v cannot hold its numbers", name, dt))
		}
	}
	own := t.Cast(dt).To(place)
	return own, own.Eval()
}

// same returns an error if an entry differs from t, apart from the signs of zeros.
func same(f *safetensors.File, name string, p *Param, t *millrace.Tensor) error {
	u, err := read(f, name, p)
	if err != nil {
		return err
	}
	defer drop(u)
	if ok, err := millrace.AllClose(u, t, 0, 0); err != nil || !ok {
		return cmp.Or(err, fmt.Errorf("%w: tied weights are not equal", ErrMismatch))
	}
	return nil
}
