package nn

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/safetensors"
)

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
// is loaded; integers of another width are taken where they fit. [LoadOptions] allow more.
// Where reading fails midway, some parameters are the file's already. Steps of an optimiser
// that is among the parts wait until all is loaded.
//
// An entry by another name of a tied weight has to be equal to the one by its first name,
// or to be there in its place.
func Load(path string, parts ...any) error { return LoadOptions{}.Load(path, parts...) }

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
