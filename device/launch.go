package device

import (
	"errors"
	"time"

	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/runtime"
)

// Launch has the driver run a list for a stream. of is what is known of the list, nil
// where it will hardly run again. A profile has some of its runs done launch by launch.
func (d *Base) Launch(list []runtime.Launch, of *profile.List, stream uint64) error {
	p := d.Profile
	if p == nil || len(list) == 0 {
		return d.Driver.Run(list)
	}
	if of == nil {
		of = new(profile.List)
	}
	start := time.Now()
	if !of.Due() {
		err := d.Driver.Run(list)
		p.Whole(of, profile.Row(stream), start, len(list), d.Caps.Exact)
		return err
	}
	timed := make([]profile.Launch, 0, len(list))
	for at := 0; at < len(list); {
		n := 1
		if c := list[at].Chain; c != nil {
			n = c.N
		}
		begun := time.Now()
		err := d.Driver.Run(list[at : at+n])
		if err == nil && !d.Caps.Exact { // which may still be at it
			err = d.Driver.Wait(false)
		}
		if err != nil {
			var failed *runtime.LaunchError
			if errors.As(err, &failed) {
				moved := *failed
				moved.Index += at
				return &moved
			}
			return err
		}
		timed = append(timed, profile.Launch{Start: begun, Took: time.Since(begun), First: at, N: n})
		at += n
	}
	p.Timed(of, profile.Row(stream), start, time.Since(start), list, &d.Caps.ElemSize, timed)
	return nil
}
