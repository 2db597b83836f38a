//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace"
)

// TestLend: the program reads a result in place, in its own context.
func TestLend(t *testing.T) {
	c := own(t)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer c.Destroy()
	if err := c.MakeCurrent(); err != nil {
		t.Fatal(err)
	}
	defer c.Leave()
	beside, err := Share()
	if err != nil {
		t.Fatal(err)
	}
	Use("lending", beside)
	defer Use("lending", Context{})
	d, err := millrace.Open("opengl:adapter=lending")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := millrace.FromSliceOn(d, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	for _, c := range []struct {
		name string
		t    *millrace.Tensor
		want []float32
	}{
		{"a result", x.MulScalar(2), []float32{2, 4, 6, 8, 10, 12}},
		{"part of one", x.MulScalar(3).Slice(millrace.R(1, 2)), []float32{12, 15, 18}},
		{"one in another order", x.MulScalar(1).T(), []float32{1, 4, 2, 5, 3, 6}},
	} {
		got := make([]float32, len(c.want))
		err := Lend(c.t, func(buffer uint32, offset int) error {
			gl.BindBuffer(gl.COPY_READ_BUFFER, buffer)
			gl.GetBufferSubData(gl.COPY_READ_BUFFER, offset, 4*len(got), gl.Ptr(got))
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	why := errors.New("test")
	if err := Lend(x, func(uint32, int) error { return why }); !errors.Is(err, why) {
		t.Errorf("%v, want the callback's error", err)
	}
	never := func(uint32, int) error { t.Error("lent"); return nil }
	cpu, err := millrace.Open("cpu:compile=off")
	if err != nil {
		t.Fatal(err)
	}
	defer cpu.Close()
	apart, err := millrace.Open("opengl:isolate=on")
	if err != nil {
		t.Fatal(err)
	}
	defer apart.Close()
	if _, err := millrace.Open("opengl:isolate=on,adapter=lending"); err == nil || !strings.Contains(err.Error(), `context "lending", which belongs to this process`) {
		t.Errorf("the program's context was isolated: %v", err)
	}
	for name, bad := range map[string]any{
		"another process": millrace.FromSliceOn(apart, []float32{1}),
		"no tensor":       5, "nil": (*millrace.Tensor)(nil), "another device": millrace.FromSliceOn(cpu, []float32{1}),
		"one with an error": x.Add(millrace.FromSliceOn(d, []float32{1, 2})),
	} {
		if err := Lend(bad, never); err == nil || !strings.Contains(err.Error(), "lend_test.go") && !strings.HasPrefix(name, "one with") {
			t.Errorf("%s: %v, want an error with this line", name, err)
		}
	}
}
