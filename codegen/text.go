package codegen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/millrace-go/millrace/ir"
)

// String prints the canonical text, which [Parse] reads back:
//
//	in 0 : float32
//	out 1 : float32
//	scalar 0 : float32
//	%0 = load 0 : float32
//	%1 = scalar 0 : float32
//	%2 = mul %0 %1 : float32
//	store 1 %2
//
// Operands and scalars come first, numbered by slot. A value is named by its index in the body.
// Writes come last. The word "row" follows a row operand. In a phase, the operand of a row op is a
// line like a store: "sum 1 %2". If denormals are flushed, the first line is "denormals flush".
// Tables and sub-programs have names, so the text means the same in every build.
func (k *Kernel) String() string {
	w := make(text, 0, 32*(len(k.Operands)+len(k.Scalars)+len(k.Body)+len(k.Stores)+len(k.Reduces)))
	if k.Denormals == ir.FlushDenormals {
		w.word("denormals").word("flush").line()
	}
	for i, o := range k.Operands {
		w.word(o.Kind.String()).word(strconv.Itoa(i))
		if o.Kind != Index {
			w.word(":").word(o.DT.String())
		}
		if o.Row {
			w.word("row")
		}
		w.line()
	}
	for i, d := range k.Scalars {
		w.word("scalar").word(strconv.Itoa(i)).word(":").word(d.String()).line()
	}
	for i, in := range k.Body {
		w.ref(ir.Ref(i)).word("=")
		w.instr(in)
		w.word(":").word(in.DT.String()).line()
	}
	for _, s := range k.Stores {
		w.word("store").word(strconv.Itoa(s.Operand)).ref(s.Value).line()
	}
	for _, r := range k.Reduces {
		w.word(r.Op.String()).word(strconv.Itoa(r.Operand)).ref(r.Value)
		if r.Descending {
			w.word("descending")
		}
		w.line()
	}
	return string(w)
}

// Key is the xxhash64 of the canonical text. It is the same in every process for kernels that
// compute the same in the same way.
func (k *Kernel) Key() uint64 { return KeyOf(k.String()) }

// KeyOf is the key of the kernel with this text.
func KeyOf(text string) uint64 { return xxhash.Sum64String(text) }

// Equal says whether two kernels are the same, instruction by instruction.
func (k *Kernel) Equal(other *Kernel) bool {
	return k.Denormals == other.Denormals && slices.Equal(k.Operands, other.Operands) && slices.Equal(k.Scalars, other.Scalars) && slices.Equal(k.Body, other.Body) &&
		slices.Equal(k.Stores, other.Stores) && slices.Equal(k.Reduces, other.Reduces)
}

// text is a buffer of lines of words.
type text []byte

func (w *text) word(s string) *text {
	if n := len(*w); n > 0 && (*w)[n-1] != '\n' {
		*w = append(*w, ' ')
	}
	*w = append(*w, s...)
	return w
}

func (w *text) ref(r ir.Ref) *text {
	*w = strconv.AppendInt(*w.word("%"), int64(r), 10)
	return w
}

func (w *text) number(n uint64) *text {
	*w = strconv.AppendUint(*w.word(""), n, 10)
	return w
}

func (w *text) line() { *w = append(*w, '\n') }

// instr prints an instruction up to its dtype.
func (w *text) instr(in ir.Instr) {
	w.word(in.Op.String())
	switch in.Op {
	case ir.Const:
		w.word(ir.FormatBits(in.DT, in.Imm))
	case ir.Lookup:
		w.word(tableName(in.Imm))
	case ir.Rare:
		w.word(subName(in.Imm))
	case ir.Load, ir.IndexLo, ir.IndexHi, ir.Scalar, ir.Param:
		w.number(in.Imm)
	case ir.LoadAt:
		w.word(strconv.Itoa(slotOf(in))).word(ModeOf(in).String())
	case ir.Scatter:
		w.word(strconv.Itoa(slotOf(in))).word(ModeOf(in).String()).word(CombineOf(in).String())
	}
	if in.Op.Class() == ir.ClassSort && in.Imm != 0 {
		w.word("descending")
	}
	for _, a := range in.Args {
		if a != ir.None {
			w.ref(a)
		}
	}
}

func tableName(id uint64) string {
	if t := ir.TableByID(id); t != nil {
		return t.Name
	}
	return "?"
}

func subName(id uint64) string {
	if p := ir.SubByID(id); p != nil {
		return p.Name
	}
	return "?"
}

// FormatBody prints instructions as String does, one per line, for messages and for code that is
// not a kernel.
func FormatBody(body []ir.Instr) string {
	var w text
	for i, in := range body {
		w.ref(ir.Ref(i)).word("=")
		w.instr(in)
		w.word(":").word(in.DT.String()).line()
	}
	return strings.TrimSuffix(string(w), "\n")
}
