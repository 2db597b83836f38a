package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Job says which files are computed, where to, and by whom.
type Job struct {
	In  []string // paths of the files, the same list in the same order in all processes
	Out string   // folder of the outputs; it is made if there is none

	// Name returns the path of a file's output, below Out. If Name is nil, it is the base name of the
	// file.
	Name func(in string) string

	Part, Parts int // the process is part Part of Parts; 0 Parts mean 1
	Retries     int // a file that fails is tried so many times more
	Workers     int // files that are computed at the same time in this process; 0: 1
}

// Sum says what a Run did.
type Sum struct {
	Done   int        // files that this Run computed
	Before int        // files whose outputs were there, made earlier or by another process
	Failed []*Failure // files without output, in the order of In
}

// Failure is a file that could not be computed.
type Failure struct {
	In    string
	Tries int
	Err   error // of the last try
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s failed after %d tries: %v", f.In, f.Tries, f.Err)
}

// Unwrap returns the error of the last try.
func (f *Failure) Unwrap() error { return f.Err }

var (
	// ErrJob: a Job contradicts itself.
	ErrJob = errors.New("files: the job is not valid")
	// ErrPanic: the function panicked or ended its goroutine.
	ErrPanic = errors.New("the function did not return")
	// ErrCrashed: processes began a file more often than it may be tried, and did not end it.
	ErrCrashed = errors.New("the file probably makes the process crash")
)

// plan is a checked Job.
type plan struct {
	Job
	out   []string // of each input
	order []int    // inputs in the order in which this process wants them
	begun []int    // temporary files of each input when the Run began
}

func (j Job) plan() (*plan, error) {
	p := &plan{Job: j}
	if p.Parts == 0 {
		p.Parts = 1
	}
	if p.Workers == 0 {
		p.Workers = 1
	}
	switch {
	case p.Parts < 0 || p.Part < 0 || p.Part >= p.Parts:
		return nil, fmt.Errorf("%w: part %d of %d does not exist", ErrJob, j.Part, j.Parts)
	case p.Workers < 0 || p.Retries < 0:
		return nil, fmt.Errorf("%w: it has %d workers and %d retries", ErrJob, j.Workers, j.Retries)
	case len(p.In) == 0:
		return nil, fmt.Errorf("%w: it has no files", ErrJob)
	case p.Out == "":
		return nil, fmt.Errorf("%w: it has no folder for outputs", ErrJob)
	}
	if err := p.name(); err != nil {
		return nil, err
	}
	if err := p.look(); err != nil {
		return nil, err
	}
	p.sort()
	return p, nil
}

// name finds the outputs' paths, which must differ from each other and from the inputs.
func (p *plan) name() error {
	root, err := filepath.Abs(p.Out)
	if err != nil {
		return err
	}
	from := make(map[string]string, len(p.In))
	for _, in := range p.In {
		name := filepath.Base(in)
		if p.Name != nil {
			name = filepath.Clean(p.Name(in))
		}
		if !filepath.IsLocal(name) || name == "." {
			return fmt.Errorf("%w: the output of %s is named %q, which is not a path below the folder", ErrJob, in, name)
		}
		if other, twice := from[name]; twice {
			return fmt.Errorf("%w: %s and %s have the same output, %s; give the job a Name", ErrJob, other, in, name)
		}
		from[name] = in
		p.out = append(p.out, filepath.Join(root, name))
	}
	for i, in := range p.In {
		path, err := filepath.Abs(in)
		if err != nil {
			return err
		}
		if name, err := filepath.Rel(root, path); err == nil && from[name] != "" {
			return fmt.Errorf("%w: %s would be overwritten by an output", ErrJob, p.In[i])
		}
	}
	return nil
}

// look makes the folders, and counts the temporary files of each input.
func (p *plan) look() error {
	index := make(map[string]int, len(p.out))
	folders := map[string]bool{}
	for i, path := range p.out {
		index[path] = i
		folders[filepath.Dir(path)] = true
	}
	p.begun = make([]int, len(p.In))
	for dir := range folders {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if i, temporary := index[owner(dir, e)]; temporary {
				p.begun[i]++
			}
		}
	}
	return nil
}

// owner returns the path that a temporary file is to be renamed to, as tensorfile names them; "" for
// other files.
func owner(dir string, e fs.DirEntry) string {
	name, hidden := strings.CutPrefix(e.Name(), ".")
	name, temporary := strings.CutSuffix(name, ".tmp")
	if at := strings.LastIndexByte(name, '.'); hidden && temporary && at > 0 && len(name)-at == 9 && e.Type().IsRegular() {
		return filepath.Join(dir, name[:at])
	}
	return ""
}

// sort puts the process's own part first, and then the files of the other parts, each part from its
// end, where its owner comes last. Files that somebody has begun come after the others.
func (p *plan) sort() {
	n := len(p.In)
	bound := func(part int) int { return part * n / p.Parts }
	for i := bound(p.Part); i < bound(p.Part+1); i++ {
		p.order = append(p.order, i)
	}
	for k := 1; k < p.Parts; k++ {
		part := (p.Part + k) % p.Parts
		for i := bound(part+1) - 1; i >= bound(part); i-- {
			p.order = append(p.order, i)
		}
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return min(p.begun[a], 1) - min(p.begun[b], 1) })
}
