package debug_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/debug"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func get(t *testing.T, path string) string {
	t.Helper()
	s := httptest.NewServer(http.DefaultServeMux)
	defer s.Close()
	resp, err := http.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s", path, err, resp.Status)
	}
	return string(body)
}

// The page, the counters and the labels are there for who imports the package.
func TestImported(t *testing.T) {
	d, err := millrace.Open("cpu:report,threads=2,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := millrace.UniformOn(d, millrace.Float32, 1, 512, 1024)
	step := func() {
		if _, err := millrace.Item[float32](x.Tanh().Softmax(1).Sum()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if page := get(t, "/debug/millrace"); !strings.HasPrefix(page, "<!") || !strings.Contains(page, "tanh") {
		t.Errorf("page %.200q", page)
	}
	var vars struct{ Millrace []debug.Device }
	if err := json.Unmarshal([]byte(get(t, "/debug/vars")), &vars); err != nil {
		t.Fatal(err)
	}
	if len(vars.Millrace) != 1 || vars.Millrace[0].Name != "cpu" || vars.Millrace[0].Stats.Kernels == 0 {
		t.Errorf("counters %+v", vars.Millrace)
	}

	// A profile has samples of kernels: the text of its labels is there only then.
	for deadline := time.Now().Add(20 * time.Second); ; {
		var packed bytes.Buffer
		if err := pprof.StartCPUProfile(&packed); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			step()
		}
		pprof.StopCPUProfile()
		r, err := gzip.NewReader(&packed)
		if err != nil {
			t.Fatal(err)
		}
		profile, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(profile, []byte("kernel_key")) && bytes.Contains(profile, []byte("tanh+")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no sample carries a kernel's label")
		}
	}
}
