package plancache

import (
	"bytes"
	"testing"
)

// Every truncation of an entry's file, and every change of one of its bytes, makes it invalid.
func TestDecodeDamage(t *testing.T) {
	for _, want := range []Entry{{"plan", "a scope\nthe key", []byte("the value of the entry")}, {"object", "", nil}} {
		good := encode(want.Kind, want.Key, want.Value)
		if e, err := decode(good); err != nil || e.Kind != want.Kind || e.Key != want.Key || !bytes.Equal(e.Value, want.Value) {
			t.Fatalf("%+v, %v, want %+v", e, err, want)
		}
		for n := range good {
			if e, err := decode(good[:n:n]); err == nil {
				t.Errorf("cut to %d: %+v", n, e)
			}
		}
		bad := bytes.Clone(good)
		for i := range good {
			for by := 1; by < 256; by++ {
				bad[i] = good[i] ^ byte(by)
				if e, err := decode(bad); err == nil {
					t.Errorf("byte %d changed by %x: %+v", i, by, e)
				}
			}
			bad[i] = good[i]
		}
	}
}
