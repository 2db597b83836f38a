package data_test

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
)

// TestAheadOnDevice: the next batches are on the device while the program is busy with one, at most
// as many as requested. After a few batches no more memory is allocated, whatever the last one's
// size.
func TestAheadOnDevice(t *testing.T) {
	dev, err := millrace.Open("cpu:threads=1")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const records, batch, width, prefetch = 1000, 64, 1024, 3
	const bytes = batch * width * 4
	s := source(t)(data.FromColumns(data.ColumnOf(make([]float32, records*width), width)))
	l := loader(t, s, data.Options{Batch: batch, Prefetch: prefetch, On: dev})
	live := func() int64 { return dev.Stats().LiveBytes }
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if live() >= (1+prefetch)*bytes {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if got := live(); got != (1+prefetch)*bytes {
			t.Errorf("%d bytes on the device, want %d batches of %d", got, 1+prefetch, bytes)
		}
		b.Release()
		break
	}
	var fresh int64
	for e := range 8 {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			if got := live(); got > (2+prefetch)*bytes {
				t.Fatalf("%d bytes on the device", got)
			}
		}
		if r := dev.Stats().Runtime; e < 2 {
			fresh = r.Allocs - r.PoolHits
		} else if r.Allocs-r.PoolHits > fresh {
			t.Errorf("epoch %d: %d blocks were taken from the system, %d up to epoch 1", e, r.Allocs-r.PoolHits, fresh)
		}
	}
	if got := live(); got != 0 {
		t.Errorf("%d bytes are left on the device", got)
	}
}

// BenchmarkBatchOfOne times batches of one record, the smallest steps.
func BenchmarkBatchOfOne(b *testing.B) {
	x := make([]int32, 1<<16)
	s := source(b)(data.FromColumns(data.ColumnOf(x, 4), data.ColumnOf(x[:len(x)/4])))
	l := loader(b, s, data.Options{Batch: 1, Shuffle: true})
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for batch, err := range l.Batches(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			batch.Release()
			if n++; n == b.N {
				break
			}
		}
	}
}

// BenchmarkBatch128 has images of CIFAR's size.
func BenchmarkBatch128(b *testing.B) {
	const records = 2000
	s := source(b)(data.FromColumns(data.ColumnOf(make([]uint8, records*3072), 3, 32, 32), data.ColumnOf(make([]int32, records))))
	l := loader(b, s, data.Options{Batch: 128, Shuffle: true})
	b.ReportAllocs()
	b.SetBytes(128 * 3072)
	for n := 0; n < b.N; {
		for batch, err := range l.Batches(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			batch.Release()
			if n++; n == b.N {
				break
			}
		}
	}
}
