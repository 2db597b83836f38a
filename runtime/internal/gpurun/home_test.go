package gpurun

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// TestHome: freed memory returns to its home, is nobody else's, and is all the program's if memory
// lacks or the home is closed.
func TestHome(t *testing.T) {
	d, _ := openRecorder(t, runtime.Config{MemoryLimit: 20 << 10})
	alloc := func(from func(int64) (runtime.Buffer, error), n int64) Buffer {
		t.Helper()
		b, err := from(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Free(b) })
		return b.(*buffer).mem
	}
	h, other := d.NewHome(), d.NewHome()
	first, err := h.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	mem := first.(*buffer).mem
	d.Free(first)
	if s := d.Stats(); s.PoolBytes != mem.Size() || s.AllocBytes != 0 {
		t.Errorf("%d bytes pooled, %d in use", s.PoolBytes, s.AllocBytes)
	}
	if alloc(d.Alloc, 1000) == mem || alloc(other.Alloc, 1000) == mem || alloc(h.Alloc, 3000) == mem {
		t.Error("memory was given to another user")
	}
	again, err := h.Alloc(1000)
	if err != nil || again.(*buffer).mem != mem {
		t.Errorf("other memory, %v", err)
	}
	second := alloc(h.Alloc, 1000)
	if second == mem {
		t.Error("memory in use was given again")
	}
	d.Free(again)
	alloc(d.Alloc, 14<<10) // there is room for it only without what is pooled
	if s := d.Stats(); s.PoolBytes != 0 || !mem.(*fakeBuffer).gone {
		t.Errorf("%d bytes stay pooled", s.PoolBytes)
	}

	d, _ = openRecorder(t, runtime.Config{})
	h = d.NewHome()
	var bufs []runtime.Buffer
	for range maxHome + 2 {
		b, err := h.Alloc(100)
		if err != nil {
			t.Fatal(err)
		}
		bufs = append(bufs, b)
	}
	for _, b := range bufs {
		d.Free(b)
	}
	if n := d.memory.pool[256].Len(); n != 2 {
		t.Errorf("%d buffers are pooled for all", n)
	}
	h.Close()
	h.Close()
	if n := d.memory.pool[256].Len(); n != maxHome+2 || len(d.memory.homes) != 0 {
		t.Errorf("after Close %d buffers are pooled for all", n)
	}
	if b, err := h.Alloc(100); err != nil {
		t.Error(err)
	} else if d.Free(b); len(d.memory.homes) != 0 {
		t.Error("memory returns to a closed home")
	}
	f := newFake()
	plain := New("fake", f, d.lang, runtime.Config{})
	defer plain.Close()
	if plain.NewHome() != nil {
		t.Error("a home on a Device without recordings")
	}
}

// TestOldest: the pool gives the oldest of the free buffers of a size, in whatever order they came.
func TestOldest(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(1, 9))
	var all []*buffer
	for range 50 {
		b, err := d.memory.alloc(1000)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	for range 20 {
		n := 1 + rng.IntN(len(all))
		want := rng.Perm(len(all))[:n]
		for _, i := range want {
			d.memory.free(all[i])
		}
		slices.Sort(want)
		for _, i := range want {
			b, err := d.memory.alloc(1000)
			if err != nil || b.chunk != all[i].chunk {
				t.Fatalf("%v: chunk %d, want %d", err, b.number, all[i].number)
			}
			all[i] = b
		}
	}
}

// TestHomesRandom: no two users have the same memory, and nothing is lost, in any order of calls.
func TestHomesRandom(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 6))
		d, f := openRecorder(t, runtime.Config{MemoryLimit: 64 << 10})
		homes := make([]runtime.Home, 4)
		used := map[Buffer]runtime.Buffer{}
		for range 400 {
			i := rng.IntN(len(homes))
			if homes[i] == nil {
				homes[i] = d.NewHome()
			}
			switch rng.IntN(8) {
			case 0, 1, 2:
				b, err := homes[i].Alloc(int64(1000 * (i + 1)))
				mustDiffer(t, used, b, err)
			case 3:
				b, err := d.Alloc(int64(1000 * (1 + rng.IntN(10))))
				mustDiffer(t, used, b, err)
			case 4:
				homes[i].Close()
				homes[i] = nil
			default:
				for mem, b := range used { // any
					d.Free(b)
					delete(used, mem)
					break
				}
			}
			live := int64(0)
			for mem := range used {
				live += mem.Size()
			}
			if s := d.Stats(); s.AllocBytes != live || s.AllocBytes+s.PoolBytes != f.bytes || f.bytes > 64<<10 {
				t.Fatalf("seed %d: %d bytes in use, want %d; %d pooled of %d", seed, s.AllocBytes, live, s.PoolBytes, f.bytes)
			}
		}
	}
}

func mustDiffer(t *testing.T, used map[Buffer]runtime.Buffer, b runtime.Buffer, err error) {
	t.Helper()
	if errors.Is(err, runtime.ErrOutOfMemory) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	mem := b.(*buffer).mem
	if used[mem] != nil {
		t.Fatal("memory in use was given again")
	}
	used[mem] = b
}
