package shader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Shaders are kept for later processes as text, under a key that says for which kernel, as fusion
// wrote it, and for which variant they were printed. A process that finds one prints it again and
// compares the texts. So a driver's compiler, which may not be safe against that, never gets a text
// that was changed.

// Limits of what is kept, in bytes, far above the needs of any kernel that a device takes. The time
// to print a shader, and to compile it, grows faster than its text.
const (
	maxNoteKey    = 1 << 16
	maxNoteSource = 1 << 20
)

// NotesShader reports whether a shader with this key, made by NoteKey, is short enough to be kept.
// ReadNote reads no others.
func NotesShader(key, source string) bool {
	return len(key) <= maxNoteKey && len(source) <= maxNoteSource
}

// noteWord begins the first line of a key.
const noteWord = "variant "

// NoteKey is the key under which a shader of a kernel is kept.
func NoteKey(k *codegen.Kernel, v *Variant) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible for a struct of numbers
	}
	return noteWord + string(text) + "\n" + k.String()
}

// ErrNote says that a text is not the one that is printed for its key: another version of the
// printer made it, or it was changed.
var ErrNote = errors.New("shader: the text is not that of its kernel and variant")

// ReadNote reads a key that NoteKey made and checks the text in d that is kept under it. It prints
// no more than the length of that text. For a shader without a kernel, as those of sorts are, k is
// nil and v has only Bindings.
func ReadNote(d *Dialect, key, source string) (k *codegen.Kernel, v *Variant, err error) {
	defer func() { // an invalid variant may cause any panic
		if r := recover(); r == ErrNote {
			k, v, err = nil, nil, ErrNote
		} else if r != nil {
			k, v, err = nil, nil, fmt.Errorf("shader: printing a kept shader: %v", r)
		}
	}()
	if !NotesShader(key, source) {
		return nil, nil, fmt.Errorf("shader: an entry has %d bytes of text and a key of %d bytes, which no shader has", len(source), len(key))
	}
	if text, ok := strings.CutPrefix(key, sortWord); ok {
		v, err := readSortNote(d, text, source)
		return nil, v, err
	}
	line, text, _ := strings.Cut(key, "\n")
	line, ok := strings.CutPrefix(line, noteWord)
	if !ok {
		return nil, nil, errors.New("shader: the key is not that of a shader")
	}
	v = new(Variant)
	j := json.NewDecoder(bytes.NewReader([]byte(line)))
	j.DisallowUnknownFields()
	if err := j.Decode(v); err != nil {
		return nil, nil, fmt.Errorf("shader: a shader's variant: %w", err)
	}
	if k, err = codegen.Parse(text); err == nil {
		err = k.Verify()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("shader: a shader's kernel: %w", err)
	}
	if err := v.check(k); err != nil {
		return nil, nil, err
	}
	if NoteKey(k, v) != key {
		return nil, nil, errors.New("shader: a shader's key is not in canonical form")
	}
	ready, err := Prepare(k)
	if err != nil {
		return nil, nil, err
	}
	printed, err := printUpTo(d, ready, v, max(len(source), 1))
	if err != nil {
		return nil, nil, err
	}
	if printed != source {
		return nil, nil, ErrNote
	}
	return k, v, nil
}

// readSortNote is ReadNote for a sort's shader. Its text has a few lines, whatever the key.
func readSortNote(d *Dialect, text, source string) (*Variant, error) {
	x, err := readSort(text)
	if err != nil {
		return nil, err
	}
	printed, bindings, err := x.Print(d)
	if err != nil {
		return nil, err
	}
	if printed != source {
		return nil, ErrNote
	}
	return &Variant{Bindings: bindings}, nil
}

// Limits of a variant that was read: far above those that are chosen, and low enough that its text
// stays small.
const (
	noteGroup    = 1 << 10
	noteSteps    = 64
	noteTile     = 256
	noteLanes    = 128
	noteBindings = 1 << 8
)

// check refuses numbers that no variant of the kernel has.
func (v *Variant) check(k *codegen.Kernel) error {
	in := func(n, low, high int) bool { return low <= n && n <= high }
	t := &v.Tile
	ok := v.Mode <= Scatters && in(v.Rank, 1, runtime.MaxRank) && in(v.Kept, 0, v.Rank) &&
		(v.Lanes == 1 || v.Lanes == 4) && in(v.Each, 0, noteSteps) && in(v.Beside, 0, noteSteps) && in(v.Online, 0, noteSteps) && in(v.Unroll, 0, noteSteps) &&
		(!v.Subgroups || v.Mode == Rows) && in(v.Steps, 0, noteSteps) && in(v.Turn, 0, v.Rank-1) && (v.Steps+v.Turn == 0 || v.Mode == Map) &&
		in(v.Group, 1, noteGroup) && len(v.Args) == len(k.Operands) && len(v.Bindings) <= noteBindings
	if v.Mode == Tiles {
		per := 16
		if t.Matrix != (Matrix{}) {
			per = noteTile
			ok = ok && in(t.Matrix.Lanes, 1, noteLanes) && t.Fits()
		} else {
			ok = ok && !t.Ahead && !t.WideA && !t.WideB
		}
		ok = ok && in(t.M, 1, noteTile) && in(t.N, 1, noteTile) && in(t.K, 1, noteTile) &&
			in(t.RowsPer, 1, per) && in(t.ColsPer, 1, per) && t.Group() == v.Group &&
			in(t.MDims, 0, v.Rank) && in(t.NDims, 0, v.Rank)
	} else {
		ok = ok && *t == Tile{}
	}
	for _, b := range v.Bindings {
		ok = ok && int(b.Size) < ElemSize && (b.Size == 0 || cells[b.Size] != "" && !b.Faults) && b.DT < ir.NumDTypes
	}
	for i := range v.Args {
		a := &v.Args[i]
		ok = ok && in(a.Binding, -1, len(v.Bindings)-max(a.Parts, 1)) && in(a.Parts, 0, noteBindings) && len(a.Stages) <= runtime.MaxRank
		for _, r := range a.Stages {
			ok = ok && in(r, 0, runtime.MaxRank)
		}
	}
	if !ok {
		return errors.New("shader: the variant does not fit the kernel")
	}
	return nil
}
