//go:build cgo && unix

package ccode

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// TestWholeObjects checks that checkObject accepts a whole object, and refuses one without its
// last byte, or with headers that point past the end of the file.
func TestWholeObjects(t *testing.T) {
	needCompiler(t)
	tools, err := newToolchain(t.Context(), &Config{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer tools.remove()
	path, err := tools.compile(t.Context(), cgo.ABI+cgo.Probe(probeSymbol)+" void mr_kernel(void) {}")
	if err != nil {
		t.Fatal(err)
	}
	object, err := tools.dir.take(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkObject(object); err != nil {
		t.Fatalf("a whole object of %d bytes: %v", len(object), err)
	}
	for n := range object {
		if err := checkObject(object[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a whole object", n, len(object))
		}
	}
	if goruntime.GOOS == "darwin" {
		return
	}
	if err := checkObject(object[:len(object)-1]); !errors.Is(err, errCutShort) {
		t.Errorf("without the last byte: %v", err)
	}
	// A hole that was never written reads as zeros.
	for at := 0; at < len(object); at += 64 {
		hole := slices.Clone(object)
		clear(hole[at:])
		if checkObject(hole) == nil && at < len(object)/2 {
			t.Errorf("an object of zeros from byte %d of %d on is a whole one", at, len(object))
		}
	}
}

// TestWholeMachO is TestWholeObjects for macOS's objects, on any system.
func TestWholeMachO(t *testing.T) {
	make64 := func(kind macho.Type, offset, bytes uint64) []byte {
		var b []byte
		u32 := func(list ...uint32) {
			for _, x := range list {
				b = binary.LittleEndian.AppendUint32(b, x)
			}
		}
		u32(macho.Magic64, uint32(macho.CpuAmd64), 3, uint32(kind), 1, 72, 0, 0)
		u32(uint32(macho.LoadCmdSegment64), 72)
		b = append(b, "__TEXT\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
		for _, x := range []uint64{0, 4096, offset, bytes} {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		u32(5, 5, 0, 0)
		return append(b, make([]byte, 4096-len(b))...)
	}
	fat := func(size uint32, object []byte) []byte {
		var b []byte
		for _, x := range []uint32{macho.MagicFat, 1, uint32(macho.CpuAmd64), 3, 4096, size, 12} {
			b = binary.BigEndian.AppendUint32(b, x)
		}
		return append(append(b, make([]byte, 4096-len(b))...), object...)
	}
	whole := make64(macho.TypeDylib, 0, 4096)
	for name, c := range map[string]struct {
		object []byte
		want   error
	}{
		"whole":              {whole, nil},
		"a bundle":           {make64(macho.TypeBundle, 0, 4096), nil},
		"a program":          {make64(macho.TypeExec, 0, 4096), errNoObject},
		"cut":                {whole[:4095], errCutShort},
		"cut in the headers": {whole[:40], errCutShort},
		"starts too late":    {make64(macho.TypeDylib, 1, 4096), errCutShort},
		"overflows":          {make64(macho.TypeDylib, 1<<62, 1<<62), errCutShort},
		"rubbish":            {bytes.Repeat([]byte("rubbish"), 100), errNoObject},
		"fat":                {fat(4096, whole), nil},
		"fat and cut":        {fat(4096, whole[:4000]), errCutShort},
		"fat and cut inside": {fat(4000, whole[:4000]), errCutShort},
	} {
		if err := checkMachO(c.object); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
