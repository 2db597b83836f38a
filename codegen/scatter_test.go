package codegen

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Rows of two: operand 1 has indices to the elements 0, 1, … of either row.
const scatterKernel = `
in 0 : int32 row
in 1 : int32
in 2 : int32
out 3 : int32 row
%0 = load 1 : int32
%1 = load 2 : int32
%2 = add %1 %1 : int32
%3 = scatter 0 MODE COMBINE %0 %2 : int32
store 3 %3
`

func scatterOf(t *testing.T, mode, combine string) *Kernel {
	t.Helper()
	k, err := Parse(strings.NewReplacer("MODE", mode, "COMBINE", combine).Replace(scatterKernel))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ints(vs ...int32) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// scatterArgs are operands of two columns of three elements, updated three times each.
func scatterArgs(idx []int32, apart bool) []HostArg {
	dense := func(data []byte) HostArg {
		return HostArg{Data: data, Access: runtime.Access{Stride: [runtime.MaxRank]int64{1, 2}}}
	}
	row := func(data []byte) HostArg {
		return HostArg{Data: data, Access: runtime.Access{Stride: [runtime.MaxRank]int64{1}, IndexStride: 2, IndexSize: 3}}
	}
	x := ints(1, 2, 3, 4, 5, 6)
	out := x
	if apart {
		out = slices.Repeat([]byte{9}, len(x))
	}
	return []HostArg{row(x), dense(ints(idx...)), dense(ints(1, 10, 2, 20, 3, 30)), row(out)}
}

func TestInterpretScatter(t *testing.T) {
	for _, c := range []struct {
		mode, combine string
		idx, want     []int32
	}{
		{"error", "set", []int32{0, 2, 0, 1, 2, 2}, []int32{4, 2, 3, 40, 6, 60}},
		{"error", "add", []int32{0, 2, 0, 1, 2, 2}, []int32{7, 2, 3, 44, 11, 86}},
		{"drop", "mul", []int32{-1, 2, 0, 3, 2, 2}, []int32{4, 2, 3, 4, 30, 7200}},
		{"clamp", "max", []int32{-1, 2, 0, 3, 9, 2}, []int32{4, 2, 3, 4, 6, 60}},
		{"clamp", "min", []int32{-1, 2, 0, 3, 9, 2}, []int32{1, 2, 3, 4, 5, 6}},
	} {
		k := scatterOf(t, c.mode, c.combine)
		for _, apart := range []bool{false, true} {
			for _, k := range []*Kernel{k, lowered(t, k)} {
				args := scatterArgs(c.idx, apart)
				if err := Interpret(k, []int64{2, 3}, 1, args, nil); err != nil {
					t.Fatal(err)
				}
				if got := args[3].Data; !slices.Equal(got, ints(c.want...)) {
					t.Errorf("%s %s: got %v, want %v", c.mode, c.combine, got, c.want)
				}
			}
		}
	}
}

func lowered(t *testing.T, k *Kernel) *Kernel {
	t.Helper()
	low, err := Lower(k)
	if err != nil {
		t.Fatal(err)
	}
	return low
}

// An index out of range is found before anything is written.
func TestInterpretScatterFault(t *testing.T) {
	args := scatterArgs([]int32{0, 0, 0, 0, 0, 3}, false)
	if err := Interpret(scatterOf(t, "error", "add"), []int64{2, 3}, 1, args, nil); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("%v, want ErrIndex", err)
	}
	if !slices.Equal(args[3].Data, ints(1, 2, 3, 4, 5, 6)) {
		t.Errorf("the operand was changed: %v", args[3].Data)
	}
}

func TestScatterPhases(t *testing.T) {
	k := scatterOf(t, "drop", "add")
	s := Phases(k, PhaseOptions{})
	if !s.Scatters() || s.Contraction() || len(s.Phases) != 2 || len(s.Temps) != 2 {
		t.Fatalf("phases:\n%v", s)
	}
	for i, ph := range s.Phases {
		if err := ph.Verify(); err != nil {
			t.Errorf("phase %d: %v\n%v", i, err, s)
		}
		if _, err := Parse(ph.String()); err != nil {
			t.Errorf("phase %d: %v", i, err)
		}
	}
	if got := len(s.Phases[0].Body); got != 1 {
		t.Errorf("the indices take %d instructions", got)
	}
}

func TestScatterThatIsNone(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"int32 row\nin 1", "int32\nin 1", "into an operand within rows"},
		{"out 3 : int32 row", "out 3 : int32", "a row operand"},
		{"store 3 %3", "%4 = neg %3 : int32\nstore 3 %3", "in memory only"},
		{"store 3 %3", "store 3 %3\n", ""},
		{"scatter 0 drop add %0 %2", "scatter 3 drop add %0 %2", "no in operand"},
		{"scatter 0 drop add %0 %2", "scatter 0 drop add %0", "takes 2 operands"},
		{"scatter 0 drop add", "scatter 0 drop xor", "not a way to combine"},
		{"scatter 0 drop add", "scatter 0 up add", "not an index mode"},
		{"%2 = add %1 %1 : int32", "%2 = sum %1 : int32", "beside another row op"},
	} {
		src := strings.NewReplacer("MODE", "drop", "COMBINE", "add").Replace(scatterKernel)
		if !strings.Contains(src, c.from) {
			t.Fatalf("no %q", c.from)
		}
		_, err := Parse(strings.Replace(src, c.from, c.to, 1))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.to, err, c.want)
		}
	}
}

// A scatter in place moves the elements that indices name; otherwise the operand is also copied.
func TestScatterTraffic(t *testing.T) {
	k := scatterOf(t, "drop", "add")
	sizes := [ir.NumDTypes]int{ir.Int32: 4}
	l := &runtime.Launch{Rank: 2, Kept: 1, Dims: [runtime.MaxRank]int64{2, 3}}
	for _, a := range scatterArgs(make([]int32, 6), true) {
		l.Args = append(l.Args, a.Access)
	}
	for _, i := range []int{0, 3} {
		l.Args[i].IndexSize = 100
	}
	if read, written := Traffic(k, l, &sizes); read != 3*2*3*4 || written != 2*3*4 {
		t.Errorf("in place: %d read, %d written", read, written)
	}
	l.Args[3].Buf = other{}
	if read, written := Traffic(k, l, &sizes); read != 2*2*3*4+2*100*4 || written != 2*100*4 {
		t.Errorf("apart: %d read, %d written", read, written)
	}
}

type other struct{}

func (other) Bytes() int64 { return 0 }
