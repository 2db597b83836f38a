package ir

import (
	"math"
	"strings"
	"testing"
)

// Shapes that are allowed or not, with the reason in any dim.
func TestShapeCheck(t *testing.T) {
	const most = math.MaxInt / 8
	for _, c := range []struct {
		shape Shape
		want  string // a word of the error, "" for none
	}{
		{nil, ""}, {Shape{0}, ""}, {Shape{2, 3}, ""}, {Shape{most}, ""}, {Shape{1, most, 1}, ""},
		{Shape{most + 1}, "more elements"}, {Shape{most, 2}, "more elements"}, {Shape{2, math.MaxInt}, "more elements"},
		{Shape{most, most, 0}, ""}, {Shape{0, most, most}, ""}, {Shape{most, 0, most}, ""},
		{Shape{-1}, "negative"}, {Shape{0, -1}, "negative"}, {Shape{-1, 0}, "negative"}, {Shape{most, -1}, "negative"},
		{Shape{most, most, -1, 0}, "negative"}, {Shape{most, most, 0, -1}, "negative"}, {Shape{math.MinInt, 0}, "negative"},
		{Shape{1, 1, 1, 1, 1, 1, 1, 1}, ""}, {Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}, "rank 9"},
	} {
		switch err := c.shape.Check(); {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.shape, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.shape, err, c.want)
		}
	}
}
