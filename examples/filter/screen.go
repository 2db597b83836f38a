package main

import (
	"fmt"
	"strings"

	"github.com/go-gl/gl/v4.3-core/gl"
)

// screen is a texture that fills the window.
type screen struct {
	texture, program uint32
	width, height    int32
}

// The triangle is larger than the window; the texture's first row is the top one.
const vertexShader = `#version 430 core
out vec2 at;
void main() {
	vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
	at = vec2(corner.x, 1.0 - corner.y);
	gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
`

const fragmentShader = `#version 430 core
layout(binding = 0) uniform sampler2D picture;
in vec2 at;
out vec4 color;
void main() {
	color = vec4(texture(picture, at).rgb, 1.0);
}
`

func newScreen(width, height int) (*screen, error) {
	s := &screen{width: int32(width), height: int32(height), program: gl.CreateProgram()}
	for kind, text := range map[uint32]string{gl.VERTEX_SHADER: vertexShader, gl.FRAGMENT_SHADER: fragmentShader} {
		shader := gl.CreateShader(kind)
		source, free := gl.Strs(text + "\x00")
		gl.ShaderSource(shader, 1, source, nil)
		free()
		gl.CompileShader(shader)
		gl.AttachShader(s.program, shader)
		gl.DeleteShader(shader)
	}
	gl.LinkProgram(s.program)
	var linked int32
	if gl.GetProgramiv(s.program, gl.LINK_STATUS, &linked); linked == 0 {
		log := make([]byte, 1000)
		gl.GetProgramInfoLog(s.program, int32(len(log)), nil, &log[0])
		return nil, fmt.Errorf("the window's shaders: %s", strings.TrimRight(string(log), "\x00"))
	}
	var vertices uint32 // there are none, but OpenGL wants to be told
	gl.GenVertexArrays(1, &vertices)
	gl.BindVertexArray(vertices)
	gl.GenTextures(1, &s.texture)
	gl.BindTexture(gl.TEXTURE_2D, s.texture)
	gl.TexStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, s.width, s.height)
	gl.TexParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST)
	gl.TexParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST)
	return s, nil
}

// fill has the graphics card copy a buffer of floats to the texture. It waits until
// that is done, as the buffer is somebody else's again then.
func (s *screen) fill(buffer uint32, offset int) error {
	gl.BindBuffer(gl.PIXEL_UNPACK_BUFFER, buffer)
	gl.TexSubImage2D(gl.TEXTURE_2D, 0, 0, 0, s.width, s.height, gl.RGBA, gl.FLOAT, gl.PtrOffset(offset))
	gl.BindBuffer(gl.PIXEL_UNPACK_BUFFER, 0)
	gl.Finish()
	return nil
}

func (s *screen) draw() {
	gl.UseProgram(s.program)
	gl.DrawArrays(gl.TRIANGLES, 0, 3)
}
