package nn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/safetensors"
)

// LoadOptions say how a file's entries become parameters. The zero value is what [Load]
// does: all of the file, as it is.
type LoadOptions struct {
	// Cast rounds floats to the dtype that the parameter is kept in: a file of float16 or
	// bfloat16 into float32 (exact), or the other way round. Integers are no floats, and are
	// taken as without it.
	Cast bool
	// Partial leaves parameters as they are that the file has no entry for, and entries out
	// that no parameter has the name of. A file of which no entry has a parameter is
	// [ErrMismatch] all the same, as is an entry of another shape.
	Partial bool
	// Rename gives the parameter's name for that of an entry: "" leaves the entry out. Two
	// entries of one name are [ErrMismatch]. nil: names are as they are. What only begins
	// otherwise is simpler done by [Under].
	Rename func(entry string) string
	// Unmatched, where it is not nil, is told by Partial, before anything is loaded, which
	// parameters are left as they are and which entries are left out, both sorted.
	Unmatched func(parameters, entries []string)
}

// Load is the function of this name, with options.
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
			continue // Partial
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
		n.t.Set(t)
		drop(t)
	}
	return nil
}

// entries are the file's, by the names that parameters should have.
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
			return nil, nil, fmt.Errorf("%w: LoadOptions.Rename gives %q and %q the one name %q", ErrMismatch, first.Name, entry, name)
		}
		infos[name] = info
	}
	return infos, left, nil
}

// match finds for each parameter the entries that are its own, the one to be read first.
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

// read is an entry where the parameter is, and in its dtype.
func read(f *safetensors.File, name string, p *Param) (*millrace.Tensor, error) {
	info, err := f.Info(name)
	if err != nil {
		return nil, err
	}
	dt, place := p.t.DType(), p.t.Stream()
	if info.DType == dt {
		return f.TensorOn(place, name)
	}
	// By way of the CPU, which has all dtypes.
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
			return nil, cmp.Or(err, fmt.Errorf("%q: numbers that %v cannot hold", name, dt))
		}
	}
	own := t.Cast(dt).To(place)
	return own, own.Eval()
}

// same is an error where an entry is not t, but for zeros' signs.
func same(f *safetensors.File, name string, p *Param, t *millrace.Tensor) error {
	u, err := read(f, name, p)
	if err != nil {
		return err
	}
	defer drop(u)
	if ok, err := millrace.AllClose(u, t, 0, 0); err != nil || !ok {
		return cmp.Or(err, fmt.Errorf("%w: tied weights that are not equal", ErrMismatch))
	}
	return nil
}
