package millrace_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

var update = flag.Bool("update", false, "rewrite testdata/api.txt")

// TestAPI compares the public API, as go doc prints it, with a golden file. After a deliberate
// change, run it with -update and review the difference.
func TestAPI(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(tool, "doc", "-all", ".")
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go doc: %v\n%s", err, got)
	}
	golden := filepath.Join("testdata", "api.txt")
	if *update {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the API differs from %s; if that is meant, run go test . -run TestAPI -update", golden)
		gotFile := filepath.Join(t.TempDir(), "api.txt")
		if os.WriteFile(gotFile, got, 0o666) == nil {
			diff, _ := exec.Command("diff", "-u", golden, gotFile).CombinedOutput()
			t.Logf("%s", diff)
		}
	}
}
