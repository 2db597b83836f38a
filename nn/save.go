package nn

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/safetensors"
)

// Save writes the parameters of modules, optimisers and [Random]s to a safetensors file, by the
// names of [Params]. A tied weight is written once, under its first name. The file appears complete
// or not at all. Two parameters of one name are an error: see [Under].
//
// Steps of an optimiser among the parts may run meanwhile. The file holds the state between two
// steps. Until it is written, that state needs memory in addition to the new values.
func Save(path string, parts ...any) error {
	all, err := collect(parts)
	if err == nil {
		err = all.complete()
	}
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

// Load reads a file of [Save] or of PyTorch into parameters of the same names, shapes and dtypes,
// at their places. A missing entry, an entry without a parameter, and an entry of another shape or
// dtype are [ErrMismatch], and then nothing is loaded. Integers of another width are converted if
// they fit. [LoadOptions] allow more. If reading fails midway, some parameters already have the
// file's values. Steps of an optimiser among the parts wait until all is loaded.
//
// An entry under another name of a tied weight must equal the entry under its first name, or
// replace it.
func Load(path string, parts ...any) error { return LoadOptions{}.Load(path, parts...) }

// Under makes a part for [Save] and [Load] whose names begin with prefix and a point. An empty
// prefix adds nothing.
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
		return nil, fmt.Errorf("several parameters have the name %s", strings.Join(twice, ", "))
	}
	return all, nil
}

// Parts lists the parameters that [Save] of these parts writes, by their names in the file. Errors
// are those of Save before it writes.
func Parts(parts ...any) ([]Named, error) {
	all, err := collect(parts)
	if err != nil {
		return nil, err
	}
	return all.found, nil
}
