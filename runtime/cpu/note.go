package cpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/background"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// Plans do not say which variants of their kernels run: that depends on the layout of tensors in
// memory. So a device notes each kernel that it launches, with its layout, and stores its notes in
// the cache if it has one. Kernels of plans that will be replaced are not noted.

// KindKernel is the kind of the cache or bundle entries that record which kernels ran. [ParseNote]
// parses the key; the value of a cache entry names the processor that ran the kernel, for people.
const KindKernel = runtime.KindKernel

// noteScope is the first line of a note: the note is valid for every CPU device.
const noteScope = "device=cpu"

// Note is a kernel that ran, and the layout in which it ran.
type Note struct {
	Layout string
	Kernel *codegen.Kernel
	key    classKey
	thin   bool
}

// noteText returns the text of a note: its scope, the layout, then the kernel.
func noteText(v *variant) string {
	p := v.sched.prog
	return noteScope + "\n" + v.key.layout(len(p.kernel.Operands), v.sched.thin) + "\n" + p.text
}

// ParseNote parses the key of a cache entry of [KindKernel].
func ParseNote(s string) (*Note, error) {
	s, ok := strings.CutPrefix(s, noteScope+"\n")
	if !ok {
		return nil, errors.New("cpu: the entry is not a note of a kernel")
	}
	layout, text, ok := strings.Cut(s, "\n")
	if !ok {
		return nil, errors.New("cpu: the note names no kernel")
	}
	k, err := codegen.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cpu: the note's kernel is invalid: %w", err)
	}
	if err := k.Verify(); err != nil {
		return nil, fmt.Errorf("cpu: the note's kernel is invalid: %w", err)
	}
	if k.String() != text {
		return nil, errors.New("cpu: the note's kernel is not in canonical form")
	}
	n := &Note{Layout: layout, Kernel: k}
	n.key, n.thin, err = parseLayout(layout, len(k.Operands))
	return n, err
}

// Notes returns the notes of all live programs, sorted by the kernels' keys.
func (d *device) Notes() (list []runtime.Note) {
	for _, text := range d.noteTexts() {
		list = append(list, runtime.Note{Kind: KindKernel, Key: text})
	}
	return list
}

func (d *device) noteTexts() (texts []string) {
	for _, p := range d.programs.all() {
		for _, s := range p.schedules() {
			for _, v := range s.known() {
				if v.noted.Load() {
					texts = append(texts, noteText(v))
				}
			}
		}
	}
	return texts
}

// notes writes notes in the background. A nil one writes none.
type notes struct {
	cache runtime.Cache
	texts background.Queue[string]
}

func newNotes(cache runtime.Cache) *notes {
	if cache == nil || !ccode.Supported {
		return nil
	}
	n := &notes{cache: cache}
	n.texts.Do, n.texts.Limit = n.write, maxNotes
	return n
}

// add notes a variant that is launched.
func (n *notes) add(v *variant) {
	if v.noted.Swap(true) || n == nil {
		return
	}
	if !n.texts.Add(noteText(v)) {
		v.noted.Store(false) // try again at its next launch
	}
}

// maxNotes bounds the notes that wait for the disk.
const maxNotes = 1024

// peeker is a cache that can be read without counting a hit or a miss.
type peeker interface {
	Peek(kind, key string) ([]byte, bool)
}

func (n *notes) write(text string) {
	look := n.cache.Get
	if c, ok := n.cache.(peeker); ok {
		look = c.Peek
	}
	if _, ok := look(KindKernel, text); !ok {
		_ = n.cache.Put(KindKernel, text, []byte(ccode.Describe())) // the cache counts a failure
	}
}

// wait returns when nothing is left to write.
func (n *notes) wait() {
	if n == nil {
		return
	}
	n.texts.Wait()
}
