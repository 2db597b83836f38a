package machine

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
)

func mustMap(t testing.TB, code []byte) *Code {
	t.Helper()
	if !Supported() {
		t.Skip("no machine code on this system")
	}
	c, err := Map(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settled waits until at most n mappings are left.
func settled(t *testing.T, n int64) {
	t.Helper()
	for range 500 {
		runtime.GC()
		if count, _ := Live(); count <= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	count, bytes := Live()
	t.Errorf("%d mappings of %d bytes are left, want %d", count, bytes, n)
}

func TestUnsupported(t *testing.T) {
	if Supported() {
		if _, err := Map(nil); err == nil {
			t.Error("no code was mapped")
		}
		return
	}
	if _, err := Map(justReturn); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if Level() != None {
		t.Errorf("level %v", Level())
	}
}

// TestLifetime: pages are counted, and returned once, by Free or by the collector.
func TestLifetime(t *testing.T) {
	settled(t, 0)
	code := make([]byte, pageSize+1)
	for i := range code {
		code[i] = 0xC3
	}
	a, b := mustMap(t, code), mustMap(t, justReturn)
	if count, bytes := Live(); count != 2 || bytes != int64(a.Bytes()+b.Bytes()) {
		t.Errorf("%d mappings, %d bytes", count, bytes)
	}
	if a.Bytes() != 2*pageSize || b.Bytes() != pageSize {
		t.Errorf("%d and %d bytes, pages have %d", a.Bytes(), b.Bytes(), pageSize)
	}
	if a.Addr(1) != a.Addr(0)+1 {
		t.Error("offsets do not count bytes")
	}
	a.Free()
	a.Free()
	if count, bytes := Live(); count != 1 || bytes != int64(b.Bytes()) {
		t.Errorf("after Free %d mappings, %d bytes", count, bytes)
	}
	if a.Addr(1) != 0 {
		t.Error("freed code has an address")
	}
	runtime.KeepAlive(b)
	settled(t, 0)
	if _, bytes := Live(); bytes != 0 {
		t.Errorf("%d bytes are left", bytes)
	}
}

// TestRefused: a refusal by the system is an error, and leaves nothing mapped.
func TestRefused(t *testing.T) {
	settled(t, 0)
	mustMap(t, justReturn).Free()
	defer fault.Reset()
	for _, c := range []struct{ point, op string }{{fault.MapCode, allocateOp}, {fault.ProtectCode, protectOp}} {
		fault.Set(c.point, 1)
		_, err := Map(justReturn)
		var refused *Error
		var injected *fault.Error
		if !errors.As(err, &refused) || refused.Op != c.op || refused.Bytes != pageSize || !errors.As(err, &injected) {
			t.Errorf("%s: %v", c.point, err)
		}
		if count, bytes := Live(); count != 0 || bytes != 0 {
			t.Errorf("%s: %d mappings, %d bytes", c.point, count, bytes)
		}
		mustMap(t, justReturn).Free()
	}
}

// TestFull: at the limit, unreachable mappings are released first.
func TestFull(t *testing.T) {
	settled(t, 0)
	before := maxMappings
	maxMappings = 32
	defer func() { maxMappings = before }()
	var held []*Code
	for range maxMappings {
		held = append(held, mustMap(t, justReturn))
	}
	var full *FullError
	for range 2 { // with a collection, and without
		if _, err := Map(justReturn); !errors.As(err, &full) || full.Mappings != maxMappings {
			t.Fatalf("got %v", err)
		}
	}
	runtime.KeepAlive(held)
	held[0].Free()
	if all.full {
		held[1].Free()
		held[2].Free()
	}
	held = nil
	runtime.GC()
	for range maxMappings { // finds room, by cleanups or by sweeping
		held = append(held, mustMap(t, justReturn))
	}
	runtime.KeepAlive(held)
	held = nil
	settled(t, 0)
}

// TestConcurrent: many goroutines map, drop and free at once, up to the limit.
func TestConcurrent(t *testing.T) {
	settled(t, 0)
	mustMap(t, justReturn).Free()
	before := maxMappings
	maxMappings = 64
	defer func() { maxMappings = before }()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 200 {
				c, err := Map(justReturn)
				var full *FullError
				switch {
				case errors.As(err, &full):
				case err != nil:
					t.Error(err)
				case (i+w)%2 == 0:
					c.Free()
				}
				if n, _ := Live(); n > maxMappings {
					t.Errorf("%d mappings", n)
				}
			}
		})
	}
	wg.Wait()
	settled(t, 0)
}
