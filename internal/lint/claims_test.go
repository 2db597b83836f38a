package lint

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/internal/debugflag"
	"github.com/millrace-go/millrace/internal/engine/device"
)

var readFacts = sync.OnceValues(func() (*Facts, error) {
	root, err := findRoot(".")
	if err != nil {
		return nil, err
	}
	return ReadFacts(root)
})

func facts(t *testing.T) *Facts {
	t.Helper()
	f, err := readFacts()
	if err != nil {
		t.Fatal(err)
	}
	f.Option = func(s string) error { _, err := device.ParseOptions(s); return err }
	f.Debug = func(s string) error { _, err := debugflag.Parse(s); return err }
	return f
}

// TestClaims: everything that the documents name exists.
func TestClaims(t *testing.T) {
	f := facts(t)
	pages, err := Pages(f.Root)
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for name, text := range pages {
		for _, msg := range f.Missing(name, text) {
			t.Error(msg)
		}
	}
}

// TestMissing: for each kind a missing name is found, and an existing one is not.
func TestMissing(t *testing.T) {
	f := facts(t)
	cases := []struct{ text, want string }{
		{"`make bench` and `make bench ARGS=\"-device cpu\"`", ""},
		{"`make coffee`", "target of make called coffee"},
		{"`scripts/test.sh race cross`", ""},
		{"`scripts/test.sh race crosses`", "step of scripts/test.sh called crosses"},
		{"`go test -run FloorDiv ./ir`", ""},
		{"`go test -run FloorDim ./ir`", "go test -run FloorDim"},
		{"`go test ./irr`", "package ./irr"},
		{"`go test ./ir -run TestSums -update`, `go test -v -race -run=TestSums ./ir`", ""},
		{"`go test -run TestSums -update ./ir`", "package before -update"},
		{"```sh\ncd gomlxbackend && go test -run xx -bench Execute .\n```", ""},
		{"```sh\ncd gomlxbackend && go test -run xx -bench Executive .\n```", "go test -bench Executive"},
		{"`cd gomlxbackends`", "folder gomlxbackends"},
		{"\n    go test -bench Suites/Layouts ./runtime/webgpu\n", ""},
		{"\n    go test -bench Suites/Leyouts ./runtime/webgpu\n", "go test -bench Suites/Leyouts"},
		{"`go test -run xxx -bench Pools ./runtime/cpu` of commit c911060", ""},
		{"`go test -run xxx -bench Pools ./runtime/cpu`", "go test -bench Pools"},
		{"`go run ./examples/gpt -text input.txt -steps 200`", ""},
		{"`go run ./examples/gpt -txt input.txt`", "flag -txt of ./examples/gpt"},
		{"`python3 scripts/everyday.py`", ""},
		{"`python3 scripts/everyweek.py`", "file scripts/everyweek.py"},
		{"It is in codegen/native and stream/flush.go.", ""},
		{"It is in stream/flash.go.", "file stream/flash.go"},
		{"`flush.go`, `z_millrace_kernels.go`", ""},
		{"`flash.go`", "file flash.go"},
		{"`codegen/native`, `runtime/internal/gpurun`, `image/color`", ""},
		{"`codegen/naive`", "folder codegen/naive"},
		{"`" + Module + "/nn`, `…/gonumx`", ""},
		{"`" + Module + "/mm`", "package " + Module + "/mm"},
		{"MILLRACE_CACHE, `MILLRACE_*`", ""},
		{"MILLRACE_CASH", "variable MILLRACE_CASH"},
		{"`MILLRACE_DEBUG=lines,trace=out.json`", ""},
		{"`MILLRACE_DEBUG=line`", `unknown key "line"`},
		{"`compile=c`, `tune=`, `trace=FILE`, `cpu:threads=2,fusion=off`", ""},
		{"`compile=d`", "option compile=d"},
		{"`tone=`", "option tone="},
		{"`millrace.Open(\"cpu:treads=2\")`", "option as in cpu:treads=2"},
		{"`millrace.Open`, `nn.Linear`, `optim.AdamW`, `Tensor.WriteTo`, `Options.Denormals`, `Stats().Cache.Failed`, `runtime.GOMAXPROCS`", ""},
		{"`millrace.Shut`", "millrace.Shut"},
		{"`nn.Liner`", "nn.Liner"},
		{"`Tensor.WrightTo`", "Tensor.WrightTo"},
		{"`millrace.Options.Denormal`", "millrace.Options.Denormal"},
		{"`Stats().Cache.Faild`", "Cache.Faild"},
		{"`x.Geluh()`", "Geluh"},
		{"`LayerNorm`, `Softmax(x)`", ""},
		{"`LayerNorn`", "name LayerNorn"},
		{"```go\nx.Softmacs(1)\n```", "Softmacs"},
		{"```go\nfunc Softmacs() {}\n\nb.Softmacs(1)\n```", ""},
		{"```text\nx.Softmacs(1)\n```", ""},
		{"```go\n// app/main.go\npackage main\n```\n\n```sh\ngo run ./app\n```", ""},
	}
	for _, c := range cases {
		expect(t, f.Missing("page.md", c.text), c.want)
	}
}

func TestSnippets(t *testing.T) {
	text := "# Head\n\nUse `go test\n./ir` of commit abc.\n\n    make bench\n    make test\n\n- item\n    goes on\n\n```go\nx := `y`\n```\n`z`\n"
	var got []string
	for _, s := range Snippets(text) {
		got = append(got, fmt.Sprintf("%d %s %q", s.Line, s.Lang, s.Text))
	}
	want := []string{`6  "make bench\nmake test\n"`, "13 go \"x := `y`\\n\"", `3  "go test ./ir"`, `15  "z"`}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c := Snippet{Text: `A=b cd x && env C=d go test -run 'a b' "./c" # and so on`}.Commands()
	if len(c) != 2 || c[1].Dir != "x" || !slices.Equal(c[1].Args, []string{"go", "test", "-run", "a b", "./c"}) || !slices.Equal(c[1].Env, []string{"env", "C=d"}) {
		t.Errorf("%+v", c)
	}
}
