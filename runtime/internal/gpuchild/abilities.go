package gpuchild

import (
	"errors"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// able is the device with the optional methods that the other process's device has.
func (d *Device) able(a *reply) gpurun.Device {
	switch {
	case a.Keeper && a.Records:
		return struct {
			*Device
			keeper
			recorder
		}{d, keeper{d}, recorder{d}}
	case a.Keeper:
		return struct {
			*Device
			keeper
		}{d, keeper{d}}
	case a.Records:
		return struct {
			*Device
			recorder
		}{d, recorder{d}}
	}
	return d
}

// keeper has the methods of a gpurun.Keeper.
type keeper struct{ dev *Device }

// Binary is the driver's compiled form of a pipeline.
func (k keeper) Binary(p gpurun.Pipeline) ([]byte, error) {
	x, ok := p.(*pipeline)
	if !ok || x.dev != k.dev {
		return nil, errors.New("gpu: the pipeline belongs to another device")
	}
	a, err := k.dev.call(&request{Call: callBinary, Object: x.id})
	if err != nil {
		return nil, err
	}
	return a.Data, nil
}

// NewPipelineOf makes a pipeline of a binary.
func (k keeper) NewPipelineOf(binary []byte, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	return k.dev.newPipeline(&request{Call: callNewPipelineOf, Data: binary, Bindings: bindings})
}

// recorder has the methods of a gpurun.Recorder.
type recorder struct{ dev *Device }

// recording is kept in the other process.
type recording struct{ object }

// Release frees the recording after submitted work is done with it.
func (r *recording) Release() { r.give(callReleaseRecording) }

// Record keeps a list of dispatches in the other process.
func (r recorder) Record(zero gpurun.Range, list []gpurun.Dispatch) (gpurun.Recording, error) {
	d := r.dev
	x, err := d.work(zero, list)
	if err != nil {
		return nil, err
	}
	id := d.number()
	if _, err := d.call(&request{Call: callRecord, Object: id, Zero: x.Zero, List: x.List}); err != nil {
		return nil, err
	}
	return &recording{object{dev: d, id: id}}, nil
}

// Play submits recorded and other dispatches in one request.
func (r recorder) Play(list []gpurun.Work) error {
	d := r.dev
	if err := d.Usable(); err != nil {
		return err
	}
	works := make([]work, len(list))
	for i := range list {
		if list[i].Rec == nil {
			var err error
			if works[i], err = d.work(list[i].Zero, list[i].List); err != nil {
				return err
			}
			continue
		}
		switch x, ok := list[i].Rec.(*recording); {
		case !ok || x.dev != d:
			return errors.New("gpu: the recording belongs to another device")
		case x.gone.Load():
			return gpurun.ErrStale
		default:
			works[i].Rec = x.id
		}
	}
	_, err := d.call(&request{Call: callPlay, Works: works})
	return err
}

// work returns dispatches, and the range that is filled with zeros before them, by their numbers.
func (d *Device) work(zero gpurun.Range, list []gpurun.Dispatch) (x work, err error) {
	x.Zero = bound{Off: zero.Off, Size: zero.Size}
	if zero.Buf != nil {
		b, err := d.own(zero.Buf)
		if err != nil {
			return x, err
		}
		x.Zero.Buf = b.id
	}
	x.List, err = d.dispatches(list)
	return x, err
}
