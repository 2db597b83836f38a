package cpu

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
)

// formOf returns a hash of everything that functions are printed from: the phases, their layouts,
// and the tables and sub-programs that phases refer to. The hash changes if another version lowers
// a kernel differently, or has other tables or other op numbers. It hashes numbers instead of
// text, because a program waits for it at the first run of a kernel.
func formOf(s *codegen.Schedule, units []cgo.Unit) string {
	f := form{}
	for i := range s.Phases {
		f.word(uint64(s.Phases[i].Level))
		f.kernel(s.Phases[i].Kernel)
	}
	f.word(uint64(len(s.Temps)))
	for _, t := range s.Temps {
		f.word(uint64(t.DT), number(t.Row))
	}
	for i := range units {
		f.text(units[i].Variant.String())
		f.named(units[i].Body)
	}
	return fmt.Sprintf("%016x", xxhash.Sum64(f.b))
}

// form collects the data to hash.
type form struct {
	b      []byte
	tables []*ir.Table // already included
	subs   []*ir.Prog
}

func (f *form) word(list ...uint64) {
	for _, n := range list {
		f.b = binary.LittleEndian.AppendUint64(f.b, n)
	}
}

func (f *form) text(s string) {
	f.word(uint64(len(s)))
	f.b = append(f.b, s...)
}

func (f *form) kernel(k *codegen.Kernel) {
	f.word(uint64(len(k.Operands)), uint64(len(k.Scalars)), uint64(len(k.Stores)), uint64(len(k.Reduces)), uint64(k.Denormals))
	for _, o := range k.Operands {
		f.word(uint64(o.Kind), uint64(o.DT), number(o.Row))
	}
	for _, dt := range k.Scalars {
		f.word(uint64(dt))
	}
	for _, s := range k.Stores {
		f.word(uint64(s.Operand), uint64(s.Value))
	}
	for _, r := range k.Reduces {
		f.word(uint64(r.Op), uint64(r.Value), uint64(r.Operand), number(r.Descending))
	}
	f.code(k.Body)
}

func (f *form) code(body []ir.Instr) {
	f.word(uint64(len(body)))
	for i := range body {
		in := &body[i]
		f.word(uint64(in.Op)|uint64(in.DT)<<32, uint64(uint32(in.Args[0]))|uint64(in.Args[1])<<32,
			uint64(uint32(in.Args[2]))|uint64(in.Args[3])<<32, in.Imm)
	}
}

// named adds the tables and sub-programs that instructions refer to.
func (f *form) named(body []ir.Instr) {
	for i := range body {
		switch in := &body[i]; in.Op {
		case ir.Lookup:
			if t := ir.TableByID(in.Imm); t != nil && !slices.Contains(f.tables, t) {
				f.tables = append(f.tables, t)
				f.text(t.Name)
				f.word(uint64(t.DT), uint64(len(t.Bits)))
				f.word(t.Bits...)
			}
		case ir.Rare:
			if p := ir.SubByID(in.Imm); p != nil && !slices.Contains(f.subs, p) {
				f.subs = append(f.subs, p)
				f.text(p.Name)
				f.code(p.Code)
				for _, r := range p.Results {
					f.word(uint64(r))
				}
				f.named(p.Code)
			}
		}
	}
}

func number(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}
