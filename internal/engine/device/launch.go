package device

import (
	"errors"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/runtime"
)

// Launch makes the driver run a list for a stream. of holds the profile's knowledge of the list;
// nil if the list will hardly run again. If the device is watched, some runs go launch by launch,
// which times each of them.
func (d *Base) Launch(list []runtime.Launch, of *profile.List, by Submitter) error {
	if !d.Watched() || len(list) == 0 {
		return d.Driver.Run(list)
	}
	if of == nil {
		of = new(profile.List)
	}
	start := time.Now()
	if !of.Due() {
		err := d.Driver.Run(list)
		if err == nil {
			d.Ran(len(list), of, by, start)
		}
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
		if err == nil && !d.Caps.Exact { // the device may still be running it
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
	took := time.Since(start)
	d.Profile.Timed(of, profile.Row(by.Stream), start, took, list, &d.Caps.ElemSize, timed)
	if d.tellsRun() {
		ev := RunEvent{Device: d.Number, Stream: by.Stream, Segment: by.Segment, Start: start, Elapsed: took, Kernels: len(list)}
		for _, t := range timed {
			ev.Launches = append(ev.Launches, launchEvent(list[t.First].Prog, t))
		}
		d.Hook(func() { d.Opts.Trace.Run(ev) })
	}
	return nil
}

// Submitter identifies the origin of launches: the number of a stream (0: none) and of its segment
// (0: not known).
type Submitter struct{ Stream, Segment uint64 }

// Watched reports whether a profile or a hook wants to know of launches.
func (d *Base) Watched() bool { return d.Profile != nil || d.tellsRun() }

func (d *Base) tellsRun() bool { return d.Opts.Trace != nil && d.Opts.Trace.Run != nil }

// Ran reports a list that ran as a whole. It began at start and has ended by now, or the device has
// taken it over.
func (d *Base) Ran(kernels int, of *profile.List, by Submitter, start time.Time) {
	d.Profile.Whole(of, profile.Row(by.Stream), start, kernels, d.Caps.Exact)
	if d.tellsRun() {
		ev := RunEvent{Device: d.Number, Stream: by.Stream, Segment: by.Segment, Start: start, Elapsed: time.Since(start), Kernels: kernels}
		d.Hook(func() { d.Opts.Trace.Run(ev) })
	}
}

func launchEvent(p runtime.Program, t profile.Launch) LaunchEvent {
	e := LaunchEvent{Kernel: keyText(p.Kernel().Key()), Chain: t.N, Start: t.Start, Elapsed: t.Took}
	if k, ok := p.Kernel().(*codegen.Kernel); ok {
		e.Name = k.Name()
	}
	return e
}
