package millrace

import (
	"github.com/millrace-go/millrace/stream"
)

// Place is where a tensor is made: a [*Device] (its default stream), a
// [*Stream] or a [*Scope]. Functions without "On" in their name use the
// default device's default stream; see [Default].
type Place interface {
	place() (stream.Place, error)
}

func (d *Device) place() (stream.Place, error) {
	if !d.made() {
		return stream.Place{}, errNilPlace
	}
	return stream.Place{S: d.d.Default()}, nil
}

func (s *Stream) place() (stream.Place, error) {
	if !s.made() {
		return stream.Place{}, errNilPlace
	}
	return stream.Place{S: s.s}, nil
}

func (sc *Scope) place() (stream.Place, error) {
	if !sc.made() {
		return stream.Place{}, errNilPlace
	}
	if err := sc.sc.Ended(); err != nil {
		return stream.Place{S: sc.sc.Home()}, err
	}
	return stream.Place{S: sc.sc.Home(), Scope: sc.sc}, nil
}

// placeOf returns the place that p names. If there is an error, it also returns the stream, if p
// names one, so that the stream can report the error.
func placeOf(p Place) (stream.Place, error) {
	if p == nil {
		return stream.Place{}, errNilPlace
	}
	return p.place()
}

// anywhere is the default device as a place. The device is opened when it is first used.
type anywhere struct{}

func (anywhere) place() (stream.Place, error) {
	d, err := Default()
	if err != nil {
		return stream.Place{}, err
	}
	return d.place()
}
