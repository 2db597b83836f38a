package apitest

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// FailsAtIndex checks that y carries the error of an index out of range, with the op, the index and
// a line of the caller's file.
func FailsAtIndex(t *testing.T, name string, y *millrace.Tensor, op, index, file string) {
	t.Helper()
	_, err := millrace.Values[float32](y)
	var e *millrace.OpError
	if !errors.Is(err, millrace.ErrIndex) || !errors.As(err, &e) {
		t.Errorf("%s: %v, want ErrIndex", name, err)
		return
	}
	if !strings.Contains(e.Caller, file) || !regexp.MustCompile("index "+index+`\b`).MatchString(err.Error()) || e.Op != op {
		t.Errorf("%s: names no line of %s, op %s or index %s: %v", name, file, op, index, err)
	}
}

// Holds checks that y has exactly these elements.
func Holds(t *testing.T, name string, y *millrace.Tensor, want ...float32) {
	t.Helper()
	if got, err := millrace.Values[float32](y); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v, want %v", name, got, err, want)
	}
}
