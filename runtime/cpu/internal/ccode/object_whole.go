//go:build cgo && unix

package ccode

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
)

// A dynamic linker maps an object as its headers say, without checks. If a mapped page is past the
// end of the file, touching it kills the process. Therefore the output of a compiler, or an entry
// of a cache, is first compared with its headers.

var (
	errNoObject = errors.New("the file is not an object of this system")
	errCutShort = errors.New("the object is shorter than its headers say")
)

// checkObject returns an error for bytes that are not a whole object for this system.
func checkObject(object []byte) (err error) {
	defer func() { // headers that crash a parser are bad, too
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errNoObject, r)
		}
	}()
	if goruntime.GOOS == "darwin" {
		return checkMachO(object)
	}
	return checkELF(object)
}

// span is a part of a file.
type span struct{ at, bytes uint64 }

// within reports that a span ends within a file of size bytes.
func (s span) within(size uint64) bool { return s.at <= size && s.bytes <= size-s.at }

// malformed wraps a parser's error about an object, which may be an early end.
func malformed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errCutShort, err)
	}
	return fmt.Errorf("%w: %w", errNoObject, err)
}

// checkELF checks the mapped segments and the sections. Linkers write section headers last, so a
// truncated file lacks them.
func checkELF(object []byte) error {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return malformed(err)
	}
	size, mapped := uint64(len(object)), 0
	var dynamic *elf.Prog
	for i, p := range f.Progs {
		if p.Type == elf.PT_NULL || p.Filesz == 0 {
			continue
		}
		if !(span{p.Off, p.Filesz}).within(size) {
			return fmt.Errorf("%w: segment %d needs %d bytes from byte %d on, the file has %d", errCutShort, i, p.Filesz, p.Off, size)
		}
		switch p.Type {
		case elf.PT_LOAD:
			mapped++
			if p.Filesz > p.Memsz {
				return fmt.Errorf("%w: segment %d has %d bytes in the file but only %d in memory", errNoObject, i, p.Filesz, p.Memsz)
			}
		case elf.PT_DYNAMIC:
			dynamic = p
		}
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL && !(span{s.Offset, s.FileSize}).within(size) {
			return fmt.Errorf("%w: section %q needs %d bytes from byte %d on, the file has %d", errCutShort, s.Name, s.FileSize, s.Offset, size)
		}
	}
	if f.Type != elf.ET_DYN || mapped == 0 || len(f.Sections) == 0 || dynamic == nil {
		return fmt.Errorf("%w: it has type %v, %d mapped segments and %d sections", errNoObject, f.Type, mapped, len(f.Sections))
	}
	return checkDynamic(f, dynamic)
}

// checkDynamic checks that the tables for the linker are in mapped bytes of the file: the linker
// reads them before it can report an error.
func checkDynamic(f *elf.File, dynamic *elf.Prog) error {
	if !mappedFrom(f, dynamic.Vaddr) {
		return fmt.Errorf("%w: its dynamic section is not mapped", errNoObject)
	}
	for _, tag := range []elf.DynTag{elf.DT_STRTAB, elf.DT_SYMTAB} {
		at, err := f.DynValue(tag)
		if err != nil {
			return malformed(err)
		}
		if len(at) != 1 || !mappedFrom(f, at[0]) {
			return fmt.Errorf("%w: %v is not mapped", errNoObject, tag)
		}
	}
	return nil
}

// mappedFrom reports that an address is in mapped bytes of the file.
func mappedFrom(f *elf.File, addr uint64) bool {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return true
		}
	}
	return false
}

// checkMachO does the same for macOS, where a file may hold objects for several processors.
func checkMachO(object []byte) error {
	r := bytes.NewReader(object)
	fat, err := macho.NewFatFile(r)
	if errors.Is(err, macho.ErrNotFat) {
		f, err := macho.NewFile(r)
		if err != nil {
			return malformed(err)
		}
		return checkSegments(f, uint64(len(object)))
	}
	if err != nil {
		return malformed(err)
	}
	for i := range fat.Arches {
		a := &fat.Arches[i]
		if !(span{uint64(a.Offset), uint64(a.Size)}).within(uint64(len(object))) {
			return fmt.Errorf("%w: the code for %v needs %d bytes from byte %d on, the file has %d", errCutShort, a.Cpu, a.Size, a.Offset, len(object))
		}
		if err := checkSegments(a.File, uint64(a.Size)); err != nil {
			return err
		}
	}
	return nil
}

func checkSegments(f *macho.File, size uint64) error {
	mapped := 0
	for _, l := range f.Loads {
		s, ok := l.(*macho.Segment)
		if !ok {
			continue
		}
		if mapped++; !(span{s.Offset, s.Filesz}).within(size) {
			return fmt.Errorf("%w: segment %s needs %d bytes from byte %d on, the file has %d", errCutShort, s.Name, s.Filesz, s.Offset, size)
		}
	}
	if mapped == 0 || f.Type != macho.TypeDylib && f.Type != macho.TypeBundle {
		return fmt.Errorf("%w: it has type %v and %d segments", errNoObject, f.Type, mapped)
	}
	return nil
}
