package nn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/safetensors"
)

// ErrMismatch is a file that does not hold what a module has. The text lists all that
// differs.
var ErrMismatch = errors.New("the file and the model differ")

// Save writes the parameters of modules, optimisers and [Random]s to a safetensors file,
// by the names of [Params]; tied weights once, by their first name. The file is there
// whole or not at all. Two parameters of one name are an error: see [Under].
//
// Steps of an optimiser that is among the parts may run meanwhile. The file has what there was
// between two of them; until it is written that stays in memory beside what they make of it.
func Save(path string, parts ...any) error {
	all, err := collect(parts)
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	tensors, end, err := all.still()
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	defer end()
	return safetensors.Save(path, tensors, map[string]string{"format": "pt"})
}

// Load reads what [Save] wrote, or PyTorch did, into parameters of the same names, shapes
// and dtypes, straight to where they are. Any entry that is missing, that no parameter
// has the name of, or that is of another shape or dtype is [ErrMismatch], and then nothing
// is loaded; integers of another width are taken where they fit. Where reading fails
// midway, some parameters are the file's already. Steps of an optimiser that is among the
// parts wait until all is loaded.
//
// An entry by another name of a tied weight has to be equal to the one by its first name,
// or to be there in its place.
func Load(path string, parts ...any) error {
	all, err := collect(parts)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	from, err := all.match(f)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	free, err := all.hold()
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	defer free()
	for i, n := range all.found {
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

// Under is a part for [Save] and [Load] whose names begin with a prefix and a point, or
// without them where the prefix is empty.
func Under(prefix string, part any) any { return under{prefix, part} }

type under struct {
	prefix string
	part   any
}

// collect lists the parameters of all parts.
func collect(parts []any) (*walker, error) {
	all := walk(nil)
	for _, part := range parts {
		prefix := ""
		for {
			u, ok := part.(under)
			if !ok {
				break
			}
			prefix, part = join(prefix, u.prefix), u.part
		}
		all.part(prefix, part)
	}
	names := map[string]bool{}
	var twice []string
	for _, n := range all.found {
		if names[n.Name] {
			twice = append(twice, n.Name)
		}
		names[n.Name] = true
		if err := n.t.Err(); err != nil {
			return nil, fmt.Errorf("%q: %w", n.Name, err)
		}
	}
	if len(twice) > 0 {
		return nil, fmt.Errorf("several parameters are called %s", strings.Join(twice, ", "))
	}
	return all, nil
}

// match finds for each parameter the entries that are its own, the one to be read first.
func (w *walker) match(f *safetensors.File) (from [][]string, err error) {
	infos := map[string]safetensors.Info{}
	for _, name := range f.Names() {
		info, err := f.Info(name)
		if err != nil {
			return nil, err
		}
		infos[name] = info
	}
	others := map[string][]string{} // by the first name
	for _, name := range slices.Sorted(maps.Keys(w.aliases)) {
		others[w.aliases[name]] = append(others[w.aliases[name]], name)
	}
	var diff []string
	for _, n := range w.found {
		var entries []string
		for _, name := range append([]string{n.Name}, others[n.Name]...) {
			info, ok := infos[name]
			if !ok {
				continue
			}
			delete(infos, name)
			entries = append(entries, name)
			if dt := n.t.DType(); !slices.Equal(info.Shape, n.t.Shape()) || info.DType != dt && !(info.DType.IsInt() && dt.IsInt()) {
				diff = append(diff, fmt.Sprintf("%s: %s %v in the file, %v %v in the model", name, info.Stored, info.Shape, dt, n.t.Shape()))
			}
		}
		if len(entries) == 0 {
			diff = append(diff, fmt.Sprintf("%s: missing in the file, %v %v in the model", n.Name, n.t.DType(), n.t.Shape()))
		}
		from = append(from, entries)
	}
	for _, info := range slices.SortedFunc(maps.Values(infos), func(a, b safetensors.Info) int { return cmp.Compare(a.Name, b.Name) }) {
		diff = append(diff, fmt.Sprintf("%s: %s %v in the file, missing in the model", info.Name, info.Stored, info.Shape))
	}
	if len(diff) > 0 {
		return nil, fmt.Errorf("%w:\n\t%s", ErrMismatch, strings.Join(diff, "\n\t"))
	}
	return from, nil
}

// read is an entry where the parameter is, and in its dtype.
func read(f *safetensors.File, name string, p *Param) (*millrace.Tensor, error) {
	info, err := f.Info(name)
	if err != nil {
		return nil, err
	}
	if info.DType == p.t.DType() {
		return f.TensorOn(p.t.Stream(), name)
	}
	// Integers of another width: by way of the CPU, which has them all.
	cpu, err := millrace.Open("cpu:threads=1,compile=off")
	if err != nil {
		return nil, err
	}
	defer cpu.Close()
	t, err := f.TensorOn(cpu, name)
	if err != nil {
		return nil, err
	}
	fits := t.Cast(p.t.DType()).Cast(info.DType).Eq(t).All()
	if ok, err := millrace.Item[bool](fits); err != nil || !ok {
		return nil, cmp.Or(err, fmt.Errorf("%q: numbers that %v cannot hold", name, p.t.DType()))
	}
	own := t.Cast(p.t.DType()).To(p.t.Stream())
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
