package stream

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// shading is a device that notes shaders and receives the shaders of bundles. It refuses a shader
// with the text "bad".
type shading struct {
	runtime.Device
	given []string
}

func (s *shading) Notes() []runtime.Note {
	return []runtime.Note{{Kind: runtime.KindShader, Key: s.Caps().Scope() + "\nwhat\nfor", Value: "a shader"}}
}

func (s *shading) Prebuild(entries iter.Seq2[string, []byte], refuse func(error)) {
	for key, value := range entries {
		if string(value) == "bad" {
			refuse(errors.New("no shader"))
			continue
		}
		s.given = append(s.given, key+": "+string(value))
	}
}

// TestBundledShaders checks that a bundle has the shaders that ran or that a cache directory has.
// A device receives its own shaders, once, and is told why it cannot use others.
func TestBundledShaders(t *testing.T) {
	openShading := func(o device.Options) (*Device, *shading) {
		t.Helper()
		drv := &shading{Device: refdev.New(runtime.Config{})}
		d, err := OpenOn(drv, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d, drv
	}
	d, drv := openShading(device.Options{Device: "ref", Cache: plancache.Off})
	own := drv.Caps().Scope()
	data := exported(t, d)

	dir := t.TempDir()
	c, err := plancache.Open(dir, plancache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{own + "\nanother", strings.Replace(own, "fingerprint ", "fingerprint new ", 1) + "\nof another adapter"} {
		if err := c.Put(runtime.KindShader, key, []byte("kept")); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{own + "\nspoiled", own + "\nwhat\nfor"} { // the latter ran here too, with another text
		if err := c.Put(runtime.KindShader, key, []byte("bad")); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	var all bytes.Buffer
	if err := exportOf(&all, planstore.PlanFilter{Cache: dir}, []*Device{d}); err != nil {
		t.Fatal(err)
	}

	var told []string
	d, drv = openShading(device.Options{Device: "ref", Cache: plancache.Off, Trace: &device.Trace{
		Cache: func(ev device.CacheEvent) { told = append(told, fmt.Sprint(ev.Kind, " ", ev.Outcome)) },
	}})
	use(t, d, data)
	if want := []string{"what\nfor: a shader"}; !slices.Equal(drv.given, want) {
		t.Errorf("given %q, want %q", drv.given, want)
	}
	drv.given = nil
	use(t, d, all.Bytes())
	slices.Sort(drv.given)
	if want := []string{"another: kept", "what\nfor: a shader"}; !slices.Equal(drv.given, want) {
		t.Errorf("given %q, want %q", drv.given, want)
	}
	if s := d.Stats().Cache; s.Bundled != 4 || s.Refused != 1 || s.Foreign != 1 {
		t.Errorf("%+v", s)
	}
	slices.Sort(told)
	if want := []string{"shader bundled", "shader bundled", "shader bundled", "shader bundled", "shader foreign", "shader refused"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	if err := d.ForeignPlans(); err == nil || !strings.Contains(err.Error(), "1 entries of kind shader are not used: the shaders are for device=ref fingerprint new") {
		t.Error(err)
	}
	plain := open(t) // has no shaders
	use(t, plain.d, data)
	if s := plain.d.Stats().Cache; s.Bundled+s.Refused+s.Foreign != 0 {
		t.Errorf("%+v", s)
	}
}
