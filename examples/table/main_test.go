package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/data"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// TestRun: it knows more than that most customers stay, from a file as from the program.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "customers.csv")
	if err := os.WriteFile(path, customers, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", path} {
		right, err := run(t.Context(), path, 20)
		if err != nil {
			t.Fatal(err)
		}
		if most := stay(t); right < most+0.03 {
			t.Errorf("%.2f right, and %.2f stay", right, most)
		}
	}
	table, err := read("")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"joined", "plan=basic", "plan=plus", "plan=pro", "visits", "spent"}; !slices.Equal(table.Columns, want) || table.Len() != 400 {
		t.Errorf("%d lines of %q", table.Len(), table.Columns)
	}
}

// stay is the share of those customers on whom run tries what it learned that stay.
func stay(t *testing.T) float64 {
	table, err := read("")
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := data.Split(table, 0.75, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y, n := make([]float32, len(table.Columns)), make([]int32, 1), 0
	for i := range held.Len() {
		if err := held.Read(i, []any{x, y}); err != nil {
			t.Fatal(err)
		}
		if y[0] == 0 {
			n++
		}
	}
	return float64(n) / float64(held.Len())
}

func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "customers.csv")
	text := strings.Replace(string(customers), ",2022-", ",22.", 1)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), path, 1); err == nil || !strings.Contains(err.Error(), `column "joined"`) {
		t.Error(err)
	}
}
