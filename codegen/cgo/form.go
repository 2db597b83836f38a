package cgo

import (
	"embed"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Printing a kernel takes longer than everything else that a warm start does for it. So compiled
// code is found by the form of a text, which is all that the text depends on: the units, the tables
// and sub-programs that they name, the ISA, and the printer, which is this package.

// sources are the sources of the printer; a test checks that none is missing.
//
//go:embed abi.h builtins.go doc.go extremum.go form.go guard.go helpers.go isa.go kernel.go
//go:embed literal.go memory.go position.go print.go probe.go row.go some.go spell.go sub.go
//go:embed types.go
var sources embed.FS

// Printer is a hash of this package: after any change of it, kernels are compiled again.
var Printer = sync.OnceValue(func() string {
	h := xxhash.New()
	files, err := sources.ReadDir(".")
	piece := make([]byte, 4<<10)
	for _, f := range files {
		h.WriteString(f.Name())
		var text fs.File
		if text, err = sources.Open(f.Name()); err == nil {
			_, err = io.CopyBuffer(h, text, piece)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		panic(err) // embedded files can always be read
	}
	return strconv.FormatUint(h.Sum64(), 16)
})

// Form returns what the text of [PrintUnits] depends on: units with equal forms have equal texts,
// in any process. It takes a tenth of the time of printing.
func Form(units []Unit, isa *ISA) string {
	f := &outline{}
	f.line("printer", Printer(), isa.Name)
	for i := range units {
		u := &units[i]
		f.line("unit", u.Name, u.Variant.String())
		f.text.WriteString(u.Kernel.String())
		f.named(u.Body)
	}
	return f.text.String()
}

// outline is a form that is being made.
type outline struct {
	text         strings.Builder
	tables, subs []uint64 // already in it
}

func (f *outline) line(words ...string) {
	f.text.WriteString(strings.Join(words, " "))
	f.text.WriteByte('\n')
}

// named adds the tables and sub-programs that instructions name.
func (f *outline) named(body []ir.Instr) {
	for _, in := range body {
		switch in.Op {
		case ir.Lookup:
			f.table(in.Imm)
		case ir.Rare:
			f.sub(in.Imm)
		}
	}
}

func (f *outline) table(id uint64) {
	t := ir.TableByID(id)
	if t == nil || slices.Contains(f.tables, id) {
		return // printing finds the error
	}
	f.tables = append(f.tables, id)
	h := xxhash.New()
	var word [8]byte
	for _, bits := range t.Bits {
		for i := range word {
			word[i] = byte(bits >> (8 * i))
		}
		h.Write(word[:])
	}
	f.line("table", strconv.FormatUint(id, 10), t.DT.String(), strconv.Itoa(len(t.Bits)), strconv.FormatUint(h.Sum64(), 16))
}

func (f *outline) sub(id uint64) {
	p := ir.SubByID(id)
	if p == nil || slices.Contains(f.subs, id) {
		return
	}
	f.subs = append(f.subs, id)
	f.line("sub", strconv.FormatUint(id, 10))
	f.line(codegen.FormatBody(p.Code))
	for _, r := range p.Results {
		f.line("result", strconv.Itoa(int(r)))
	}
	f.named(p.Code)
}
