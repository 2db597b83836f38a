package cgo

import (
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/golden"
	"github.com/millrace-go/millrace/internal/testing/kernels"
)

// TestGolden prints the kernels of testdata. The command is the ISA and the variant's letters. The
// ABI and the walking code, which are the same in every text, are left out, and so are runs of
// blank lines.
func TestGolden(t *testing.T) {
	seen := kernels.Seen{}
	golden.Run(t, "testdata", map[string]golden.Handler{
		"print": func(t *testing.T, c *golden.Case) string {
			k, err := codegen.Parse(c.Input)
			if err == nil {
				seen.Add(k)
				k, err = codegen.Lower(k)
			}
			if err != nil {
				return "error: " + err.Error()
			}
			seen.Add(k)
			source, err := Print("mr_kernel", k, parseVariant(t, c.Args[1]), isaByName(t, c.Args[0]))
			if err != nil {
				return "error: " + err.Error()
			}
			again, _ := Print("mr_kernel", k, parseVariant(t, c.Args[1]), isaByName(t, c.Args[0]))
			if again != source {
				t.Errorf("%s:%d: two prints differ", c.File, c.Line)
			}
			source = strings.NewReplacer(ABI, "", walkText, "", guardText, "").Replace(source)
			return source
		},
	})
	for _, op := range seen.Missing() {
		if !op.Info().RowOp {
			t.Errorf("no case holds %v: write one into testdata/ops.txt and run the test with -update", op)
		}
	}
}

func isaByName(t *testing.T, name string) *ISA {
	for _, isa := range ISAs {
		if isa.Name == name {
			return isa
		}
	}
	t.Fatalf("no ISA %q", name)
	return nil
}

func parseVariant(t *testing.T, text string) Variant {
	var v Variant
	letters := strings.TrimRight(text, "0123456789")
	v.Streams, _ = strconv.Atoi(text[len(letters):])
	letters, guarded := strings.CutSuffix(letters, "!")
	v.Guarded = guarded
	for i := range letters {
		for c := range codegen.NumAccesses {
			if c.String() == letters[i:i+1] {
				v.Class = append(v.Class, c)
			}
		}
	}
	if v.String() != text {
		t.Fatalf("variant %q", text)
	}
	return v
}
