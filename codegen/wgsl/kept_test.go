package wgsl

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/internal/rowtext"
)

// keptShaders are keys and texts of shaders.
func keptShaders(t testing.TB) map[string]string {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	kernels := []*codegen.Kernel{}
	for range 4 {
		kernels = append(kernels, kerneltest.Random(rng, 8, 0))
	}
	for _, text := range []string{rowtext.Softmax, rowtext.Norm} {
		k, err := codegen.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, k)
	}
	list := map[string]string{}
	for _, k := range kernels {
		ready, err := Prepare(k)
		if err != nil {
			continue // of dtypes that WGSL does not have
		}
		v := Dense(ready, 1)
		source, err := Print(ready, &v)
		if err != nil {
			continue
		}
		list[KeptKey(k, &v)] = source
	}
	if len(list) < 3 {
		t.Fatalf("%d shaders", len(list))
	}
	return list
}

// TestKept: a key reads back as the kernel and the variant, and goes with its text
// alone.
func TestKept(t *testing.T) {
	for key, source := range keptShaders(t) {
		k, v, err := ReadKept(key, source)
		if err != nil {
			t.Fatalf("%v\n%s", err, key)
		}
		if KeptKey(k, v) != key {
			t.Errorf("%s\nreads back as\n%s", key, KeptKey(k, v))
		}
		if _, _, err := ReadKept(key, source+" "); !errors.Is(err, ErrKept) {
			t.Errorf("another text: %v", err)
		}
		for _, bad := range []string{"", "variant", "variant {}\n", strings.Replace(key, "{", "{ ", 1), strings.Replace(key, "{", `{"Mode":0,`, 1),
			strings.Replace(key, `"Rank":`, `"Rank":9`, 1), strings.Replace(key, `"Binding":0`, `"Binding":77`, 1), key + "\n", key + key} {
			if _, _, err := ReadKept(bad, source); err == nil {
				t.Errorf("read %q", bad)
			}
		}
	}
}

// TestKeptBytes: every changed byte of a key, and every cut, is refused or another
// shader's.
func TestKeptBytes(t *testing.T) {
	for key, source := range keptShaders(t) {
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
				k, v, err := ReadKept(string(bad), source)
				if err == nil && KeptKey(k, v) != string(bad) {
					t.Fatalf("byte %d as %q is read as\n%s", i, b, KeptKey(k, v))
				}
			}
			if _, _, err := ReadKept(key[:i], source); err == nil {
				t.Fatalf("cut at %d of\n%s", i, key)
			}
		}
	}
}

// FuzzReadKept checks that any key is refused, or read into a kernel and a variant
// that have this key and print this text.
func FuzzReadKept(f *testing.F) {
	for key, source := range keptShaders(f) {
		f.Add(key, source)
	}
	f.Fuzz(func(t *testing.T, key, source string) {
		k, v, err := ReadKept(key, source)
		if err != nil {
			return
		}
		ready, err := Prepare(k)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := Print(ready, v); err != nil || text != source || KeptKey(k, v) != key {
			t.Fatalf("%v\n%s\n%s", err, text, key)
		}
	})
}
