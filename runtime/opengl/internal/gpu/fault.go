//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

const contextLost = 0x0507 // GL_CONTEXT_LOST, of OpenGL 4.5

var errorNames = map[uint32]string{
	gl.INVALID_ENUM: "GL_INVALID_ENUM", gl.INVALID_VALUE: "GL_INVALID_VALUE", gl.INVALID_OPERATION: "GL_INVALID_OPERATION",
	gl.INVALID_FRAMEBUFFER_OPERATION: "GL_INVALID_FRAMEBUFFER_OPERATION", gl.OUT_OF_MEMORY: "GL_OUT_OF_MEMORY", contextLost: "GL_CONTEXT_LOST",
}

var resets = map[uint32]string{
	gl.GUILTY_CONTEXT_RESET: "a shader of this device made the graphics card reset", gl.INNOCENT_CONTEXT_RESET: "the graphics card was reset",
	gl.UNKNOWN_CONTEXT_RESET: "the graphics card was reset, for an unknown reason",
}

// reported returns OpenGL's errors since the last call. A lost context makes the device lost.
func (d *Device) reported() error {
	var err error
	for range 16 { // error flags; a lost context reports them without end
		code := gl.GetError()
		if code == gl.NO_ERROR {
			break
		}
		name := errorNames[code]
		if name == "" {
			name = fmt.Sprintf("OpenGL error %#x", code)
		}
		switch {
		case code == contextLost:
			d.Lose(errors.New(name))
			return d.lostError()
		case code == gl.OUT_OF_MEMORY:
			err = fmt.Errorf("%w: %s", gpurun.ErrMemory, name)
		case err == nil:
			err = fmt.Errorf("gpu: %s", name)
		}
	}
	return err
}

// reset reports whether the graphics card was reset.
func (d *Device) reset() error {
	if !d.robust {
		return nil
	}
	if status := gl.GetGraphicsResetStatus(); status != gl.NO_ERROR {
		d.Lose(errors.New(resets[status]))
	}
	return d.lostError()
}

// Lose makes the device lost, as if its graphics card had vanished.
func (d *Device) Lose(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.lost != nil:
	case errors.Is(why, gpurun.ErrLost):
		d.lost = why
	default:
		d.lost = fmt.Errorf("%w: %v", gpurun.ErrLost, why)
	}
}

func (d *Device) lostError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// usable returns the reason why the device cannot be called. The caller holds the lock.
func (d *Device) usable() error {
	if d.closed {
		return gpurun.ErrClosed
	}
	return d.lost
}

// Usable returns the error that every call would return, or nil.
func (d *Device) Usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}
