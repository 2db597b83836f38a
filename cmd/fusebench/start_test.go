package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asFusebench makes the test binary run as fusebench, because start times processes of its own
// program.
const asFusebench = "FUSEBENCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asFusebench) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestStart checks what does not depend on the machine: nothing is explored or compiled with a
// warm cache or a bundle, and something is with an empty cache.
func TestStart(t *testing.T) {
	t.Setenv(asFusebench, "1")
	file := filepath.Join(t.TempDir(), "r.json")
	for _, program := range []string{"tanh", "scalars"} {
		code, out, errs := fusebench("start", "-device", "cpu:compile=off,threads=1", "-program", program, "-runs", "2", "-n", "100", "-ops", "10", "-format", "json", "-o", file)
		if code != 0 || out != "" || errs != "" {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Rows []struct {
				Cache        string
				Runs         int
				Explorations int64
				OpenMS       float64 `json:"open_ms"`
				FirstMS      float64 `json:"first_ms"`
				NextMS       float64 `json:"second_ms"`
				HotMS        float64 `json:"hot_ms"`
				NewMS        float64 `json:"new_chain_ms"`
				ProcessMS    float64 `json:"process_ms"`
			}
		}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Rows) != 3 || r.Rows[0].Cache != "empty" || r.Rows[1].Cache != "warm" || r.Rows[2].Cache != "bundle" {
			t.Fatalf("%s", text)
		}
		for _, row := range r.Rows {
			if row.Runs != 2 || (row.Explorations == 0) != (row.Cache != "empty") || row.OpenMS <= 0 || row.FirstMS <= 0 || row.NextMS <= 0 || row.HotMS <= 0 || row.NewMS <= 0 || row.ProcessMS <= row.OpenMS+row.FirstMS {
				t.Errorf("%+v", row)
			}
		}
	}
	if code, out, _ := fusebench("start", "-device", "cpu:compile=off", "-runs", "1", "-n", "10"); code != 0 || !strings.Contains(out, "1.3 hot + 2") {
		t.Errorf("exit %d, %q", code, out)
	}
}
