package shader

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
)

const halfProduct = "in 0 : bfloat16\nin 1 : bfloat16\nout 2 : bfloat16 row\n%0 = load 0 : bfloat16\n%1 = load 1 : bfloat16\n%2 = dot %0 %1 : bfloat16\nstore 2 %2"

// notedShaders are keys and texts of shaders.
func notedShaders(t testing.TB) map[string]string {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	ks := []*codegen.Kernel{}
	for range 4 {
		ks = append(ks, kernels.Random(rng, 8, 0))
	}
	for _, text := range []string{rowtext.Softmax, rowtext.Norm, halfProduct} {
		k, err := codegen.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, k)
	}
	list := map[string]string{}
	for _, k := range ks {
		ready, err := Prepare(k)
		if err != nil {
			continue // dtypes that shaders do not have
		}
		v := Dense(ready, 1)
		if of, _ := Halves(ready); of != ir.Invalid {
			v.Tile.Matrix = Matrix{M: 4, N: 4, K: 8, Lanes: 16, Of: of}
			v.Group = v.Tile.Group()
		}
		for i := range v.Bindings {
			if b := &v.Bindings[i]; len(list)%2 > 0 && other.Narrow(true, true).Has(b.DT) {
				b.Size = uint8(b.DT.Size())
			}
		}
		source, err := Print(other, ready, &v)
		if err != nil {
			continue
		}
		list[NoteKey(k, &v)] = source
	}
	if len(list) < 3 {
		t.Fatalf("%d shaders", len(list))
	}
	return list
}

// TestKept checks that a key reads back as its kernel and variant, and that only the right text is
// accepted for it.
func TestKept(t *testing.T) {
	for key, source := range notedShaders(t) {
		k, v, err := ReadNote(other, key, source)
		if err != nil {
			t.Fatalf("%v\n%s", err, key)
		}
		if NoteKey(k, v) != key {
			t.Errorf("%s\nreads back as\n%s", key, NoteKey(k, v))
		}
		if _, _, err := ReadNote(other, key, source+" "); !errors.Is(err, ErrNote) {
			t.Errorf("another text: %v", err)
		}
		for _, bad := range []string{"", "variant", "variant {}\n", strings.Replace(key, "{", "{ ", 1), strings.Replace(key, "{", `{"Mode":0,`, 1),
			strings.Replace(key, `"Rank":`, `"Rank":9`, 1), strings.Replace(key, `"Binding":0`, `"Binding":77`, 1), key + "\n", key + key} {
			if _, _, err := ReadNote(other, bad, source); err == nil {
				t.Errorf("read %q", bad)
			}
		}
	}
}

// TestKeptBytes checks that a key with a changed byte, or a truncated key, is refused or is the key
// of another shader.
func TestKeptBytes(t *testing.T) {
	for key, source := range notedShaders(t) {
		if len(key) > 1500 {
			continue
		}
		for i := range key {
			for _, b := range []byte{key[i] ^ 1, key[i] + 1, '0'} {
				bad := []byte(key)
				if bad[i] == b {
					continue
				}
				bad[i] = b
				k, v, err := ReadNote(other, string(bad), source)
				if err == nil && NoteKey(k, v) != string(bad) {
					t.Fatalf("byte %d as %q is read as\n%s", i, b, NoteKey(k, v))
				}
			}
			if _, _, err := ReadNote(other, key[:i], source); err == nil {
				t.Fatalf("cut at %d of\n%s", i, key)
			}
		}
	}
}

// sortShaders are those of every step, dtype and order.
func sortShaders(t testing.TB) map[SortShader]string {
	t.Helper()
	list, steps := map[SortShader]string{}, map[SortStep]bool{}
	for step := SortKeys; step <= SortPlace; step++ {
		for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
			for i := range 4 {
				x := SortShader{Step: step, DT: dt, Descending: i%2 > 0}
				if i > 1 && other.Narrow(true, true).Has(dt) {
					x.Size = uint8(dt.Size())
				}
				if source, _, err := x.Print(other); err == nil {
					list[x], steps[step] = source, true
				}
			}
		}
	}
	if len(steps) != len(sortTexts) || len(list) < 20 {
		t.Fatalf("%d shaders of %d steps", len(list), len(steps))
	}
	return list
}

// TestKeptSorts checks that a sort's shader reads back with its bindings, that only the right text
// is accepted, and that steps which do not depend on the elements' dtype have one key for all
// dtypes.
func TestKeptSorts(t *testing.T) {
	texts := map[string]string{}
	for x, source := range sortShaders(t) {
		key := x.NoteKey()
		if !NotesShader(key, source) {
			t.Errorf("%s is too long", key)
		}
		_, want, _ := x.Print(other)
		k, v, err := ReadNote(other, key, source)
		if err != nil || k != nil || !slices.Equal(v.Bindings, want) {
			t.Fatalf("%s: %v, %v, %+v", key, err, k, v)
		}
		if have, ok := texts[key]; ok && have != source {
			t.Errorf("%s has two texts", key)
		}
		texts[key] = source
		if _, _, err := ReadNote(other, key, source+" "); !errors.Is(err, ErrNote) {
			t.Errorf("another text: %v", err)
		}
	}
	if len(texts) < 8 { // keys of several dtypes, in two orders, and four others
		t.Errorf("%d keys", len(texts))
	}
	for _, bad := range []string{"sort", "sort ", "sort keys", "sort keys float32 ascending", "sort keys float32  descending", "sort keys float31",
		"sort keys invalid", "sort local float32", "sort take size=3", "sort take size=0", "sort keys size=2 int16", "sort local size=1", "sort wide\n", "sort  wide", "sort none", " sort wide"} {
		for _, source := range texts {
			if _, _, err := ReadNote(other, bad, source); err == nil || errors.Is(err, ErrNote) {
				t.Errorf("read %q: %v", bad, err)
			}
		}
	}
}

// TestKeptLong reads a kernel with many passes over its row, whose text grows with the square of
// the kernel's size. ReadNote prints no more of it than the length of the kept text, and does not
// even parse what is beyond all limits.
func TestKeptLong(t *testing.T) {
	var b strings.Builder
	b.WriteString("in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n")
	passes, at := 600, 0
	for ; at < 3*passes; at += 3 {
		fmt.Fprintf(&b, "%%%d = sum %%%d : float32\n%%%d = exp %%%d : float32\n%%%d = add %%%d %%%d : float32\n", at+1, at, at+2, at, at+3, at+2, at+1)
	}
	fmt.Fprintf(&b, "%%%d = sum %%%d : float32\nstore 1 %%%d\n", at+1, at, at+1)
	k, err := codegen.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	ready, err := Prepare(k)
	if err != nil {
		t.Fatal(err)
	}
	v := Dense(ready, 1)
	v.Unroll = noteSteps
	key := NoteKey(k, &v)
	if !NotesShader(key, "") {
		t.Fatalf("a key of %d bytes", len(key))
	}
	var read error
	n := testing.AllocsPerRun(1, func() { _, _, read = ReadNote(other, key, "short") })
	if !errors.Is(read, ErrNote) || n > 1e5 { // 20 million for all of it
		t.Errorf("%v after %g allocations", read, n)
	}
	for _, bad := range [][2]string{{key + strings.Repeat("\n# nothing", maxNoteKey/10), "short"}, {key, strings.Repeat(" ", maxNoteSource+1)}} {
		if _, _, err := ReadNote(other, bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "which no shader has") {
			t.Errorf("%d and %d bytes: %v", len(bad[0]), len(bad[1]), err)
		}
	}
}

// FuzzReadNote checks that any key is refused, or read as a kernel and a variant that have this key
// and print this text.
func FuzzReadNote(f *testing.F) {
	for key, source := range notedShaders(f) {
		f.Add(key, source)
	}
	for x, source := range sortShaders(f) {
		f.Add(x.NoteKey(), source)
	}
	f.Fuzz(func(t *testing.T, key, source string) {
		k, v, err := ReadNote(other, key, source)
		if err != nil {
			return
		}
		if k == nil {
			if x, err := readSort(strings.TrimPrefix(key, sortWord)); err != nil || x.NoteKey() != key {
				t.Fatalf("%v\n%s", err, key)
			}
			return
		}
		ready, err := Prepare(k)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := Print(other, ready, v); err != nil || text != source || NoteKey(k, v) != key {
			t.Fatalf("%v\n%s\n%s", err, text, key)
		}
	})
}
