module github.com/millrace-go/millrace

go 1.26

require github.com/cespare/xxhash/v2 v2.3.0

require github.com/rajveermalviya/go-webgpu/wgpu v0.17.1

require (
	github.com/dave/jennifer v1.7.1
	github.com/go-gl/gl v0.0.0-20231021071112-07e5d0ea2e71
	github.com/schollz/progressbar/v3 v3.19.1
	github.com/urfave/cli/v3 v3.14.0
	golang.org/x/term v0.44.0
)

require (
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	golang.org/x/sys v0.46.0 // indirect
)
