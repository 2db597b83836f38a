package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// A contestant is a program that answers the questions of package talk.
type contestant struct {
	name string
	// kept contestants reuse memory: by what the library offers for it, and by
	// what the C library's allocator is told.
	kept    bool
	ours    bool
	command []string
	env     []string
	// build, if any, makes the program, in the folder buildIn. probe has the command's arguments
	// that print the versions of what it uses.
	build, buildEnv []string
	buildIn         string
	probe           []string
}

// places are where contestants are found.
type places struct {
	source string // bench/peers
	work   string // a folder for what is built
	before string // the root of another checkout of Millrace, or ""
	python string
	burn   string // target folders of cargo, by backend: burn/flex and so on
}

// list has every contestant, installed or not.
func (p places) list(threads int) []contestant {
	var list []contestant
	for _, build := range []struct{ name, cgo string }{{"millrace", "1"}, {"millrace, no cgo", "0"}} {
		binary := filepath.Join(p.work, "ours"+build.cgo)
		this := contestant{
			name: build.name, ours: true, command: []string{binary}, probe: []string{"-versions"},
			build: []string{"go", "build", "-o", binary, "./ours"}, buildEnv: []string{"CGO_ENABLED=" + build.cgo}, buildIn: p.source,
		}
		list = append(list, this)
		if p.before != "" {
			list = append(list, this.from(p.before))
		}
	}
	for _, py := range []struct {
		name, module string
		args         []string
	}{
		{"numpy", "numpy", nil}, {"numexpr", "numexpr", nil}, {"torch", "torch", nil},
		{"torch.compile", "torch", []string{"--compile"}}, {"jax", "jax", nil}, {"onnxruntime", "onnxruntime", nil},
	} {
		command := append([]string{p.python, filepath.Join(p.source, "python", "peer.py"), py.module}, py.args...)
		list = append(list,
			contestant{name: py.name, command: command, probe: []string{"--versions"}},
			contestant{name: py.name + ", kept", kept: true, command: append(command[:len(command):len(command)], "--kept"), probe: []string{"--versions"}})
	}
	for _, backend := range []string{"flex", "ndarray", "vulkan"} {
		command := []string{filepath.Join(p.burn, backend, "release", "millrace-peer-burn"), backend}
		list = append(list, contestant{name: "burn, " + backend, command: command, probe: []string{"--versions"}})
		if backend == "flex" {
			list = append(list, contestant{name: "burn, flex, kept", kept: true, command: command, probe: []string{"--versions"}})
		}
	}
	for i := range list {
		list[i].env = environment(threads, list[i].kept)
	}
	return list
}

// from returns Millrace's contestant as another checkout builds it. It is compared with ours as
// other libraries are.
func (c contestant) from(checkout string) contestant {
	binary := c.command[0] + "-before"
	c.name, c.ours = c.name+", before", false
	c.command, c.build = []string{binary}, []string{"go", "build", "-o", binary, "./ours"}
	c.buildIn = filepath.Join(checkout, "bench", "peers")
	return c
}

// environment tells every library how many threads there are, each in its way.
func environment(threads int, kept bool) []string {
	n := strconv.Itoa(threads)
	env := append(os.Environ(), "GOMAXPROCS="+n, "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n, "OPENBLAS_NUM_THREADS="+n,
		"NUMEXPR_NUM_THREADS="+n, "NUMEXPR_MAX_THREADS="+n, "NPROC="+n, "RAYON_NUM_THREADS="+n,
		"JAX_PLATFORMS=cpu", "CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1")
	if kept && runtime.GOOS == "linux" {
		env = append(env, "GLIBC_TUNABLES="+keptMemory)
	}
	return env
}

// keptMemory has glibc give freed memory to whoever asks next instead of back to
// the system, and ask for it in huge pages.
const keptMemory = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:glibc.malloc.top_pad=67108864:glibc.malloc.hugetlb=1"
