//go:build go1.27 && !compute_go126

package compliance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
)

var update = flag.Bool("update", false, "write the table of ops anew")

// tablePage has the table of ops and dtypes, behind this line.
const (
	tablePage = "../../../docs/gomlx-operations.md"
	tableMark = "<!-- ops: by TestOpTable -->\n"
)

// notOps are values of compute.OpType that are no ops that a backend can lack.
var notOps = map[compute.OpType]bool{compute.OpTypeInvalid: true, compute.OpTypeLast: true, compute.OpTypeCapturedValue: true, compute.OpTypeBlockForDotGeneral: true}

// The page says of every op and dtype of the newest version of compute whether Millrace
// and the Go backend declare it.
func TestOpTable(t *testing.T) {
	ours, theirs := open(t, "millrace:cpu").Capabilities(), open(t, "go").Capabilities()
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	var table strings.Builder
	fmt.Fprint(&table, tableMark, "\n| op | Millrace | go |\n|---|---|---|\n")
	only, lacks := 0, 0
	for _, op := range compute.OpTypeValues() {
		if a, b := ours.Operations[op], theirs.Operations[op]; !notOps[op] {
			fmt.Fprintf(&table, "| %s | %s | %s |\n", op, yes(a), yes(b))
			if a && !b {
				only++
			}
			if b && !a {
				lacks++
			}
		}
	}
	fmt.Fprintf(&table, "\nThe Go backend lacks %d ops that Millrace has, and has %d that Millrace lacks.\n", only, lacks)
	fmt.Fprint(&table, "\n| dtype | Millrace | go |\n|---|---|---|\n")
	for _, dt := range dtypes.DTypeValues() {
		if a, b := ours.DTypes[dt], theirs.DTypes[dt]; a || b {
			fmt.Fprintf(&table, "| %s | %s | %s |\n", dt, yes(a), yes(b))
		}
	}
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	text, old, found := strings.Cut(string(page), tableMark)
	if !found {
		t.Fatalf("%s has no line %q", tablePage, tableMark)
	}
	if tableMark+old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the backends declare: run this test with -update", tablePage)
	}
	if err := os.WriteFile(tablePage, []byte(text+table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
