// Command filter shows a picture through an image filter, in a window of GLFW. The
// filter runs on the device "opengl", in a context that shares its buffers with the
// window's: pixels go from the filter's result to the texture on the graphics card.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"runtime"
	"unsafe"

	"github.com/go-gl/gl/v4.3-core/gl"
	"github.com/go-gl/glfw/v3.3/glfw"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/runtime/opengl"
)

// GLFW's windows belong to the main thread.
func init() { runtime.LockOSThread() }

func main() {
	name := flag.String("picture", "", "a PNG or JPEG `file`; none: one that is painted")
	frames := flag.Int("frames", 0, "end after so many; 0: when the window is closed")
	still := flag.Bool("still", false, "do not let the edges glow")
	flag.Parse()
	if err := run(*name, *frames, *still); err != nil {
		log.Fatal(err)
	}
}

func run(name string, frames int, still bool) error {
	picture, err := load(name)
	if err != nil {
		return err
	}
	data, height, width := pixels(picture)

	if err := glfw.Init(); err != nil {
		return err
	}
	defer glfw.Terminate()
	glfw.WindowHint(glfw.ContextVersionMajor, 4)
	glfw.WindowHint(glfw.ContextVersionMinor, 3)
	glfw.WindowHint(glfw.OpenGLProfile, glfw.OpenGLCoreProfile)
	glfw.WindowHint(glfw.Resizable, glfw.False)
	window, err := glfw.CreateWindow(width, height, "filter", nil, nil)
	if err != nil {
		return err
	}
	// The device's context: one of a window that is never shown.
	glfw.WindowHint(glfw.Visible, glfw.False)
	hidden, err := glfw.CreateWindow(1, 1, "", nil, window)
	if err != nil {
		return err
	}
	window.MakeContextCurrent()
	if err := gl.Init(); err != nil {
		return err
	}
	screen, err := newScreen(width, height)
	if err != nil {
		return err
	}
	opengl.Use("beside the window", opengl.Context{
		MakeCurrent: func() error { hidden.MakeContextCurrent(); return nil },
		Release:     glfw.DetachCurrentContext,
		ProcAddress: func(name string) unsafe.Pointer { return glfw.GetProcAddress(name) },
	})
	device, err := millrace.Open("opengl:adapter=beside the window")
	if err != nil {
		return err
	}
	defer device.Close()
	fmt.Println("filtering on", device.Description())

	source := millrace.FromSliceOn(device, data, height, width, 4)
	for n := 0; !window.ShouldClose() && (frames == 0 || n < frames); n++ {
		gain := 0.5
		if !still {
			gain += math.Sin(float64(n)/20) / 2
		}
		filtered := edges(source, gain)
		if err := opengl.Lend(filtered, screen.fill); err != nil {
			return err
		}
		filtered.Release()
		screen.draw()
		window.SwapBuffers()
		glfw.PollEvents()
		if n == 2 {
			fmt.Println("shown")
		}
	}
	if code := gl.GetError(); code != gl.NO_ERROR {
		return fmt.Errorf("OpenGL error %#x", code)
	}
	return nil
}
