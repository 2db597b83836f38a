//go:build cgo && unix

package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// shipCase is a kernel and a launch of it.
type shipCase struct {
	name string
	k    *codegen.Kernel
	h    *kerneltest.Launch
}

// shipCases returns every form of kernel that tier 1 compiles.
func shipCases(t *testing.T) (list []shipCase) {
	t.Helper()
	add := func(name string, k *codegen.Kernel, h *kerneltest.Launch) { list = append(list, shipCase{name, k, h}) }
	for how := range kerneltest.NumPatterns {
		k := scaled(t)
		add(fmt.Sprint("pattern ", how), k, kerneltest.NewLaunch(rand.New(rand.NewPCG(2, uint64(how))), k, []int64{5, 40}, 2, how))
	}
	for i, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.Uint8} {
		for half := range ir.Op(2) {
			if !thorough && (ir.Op(i)&1 == half || i > 2 || testing.Short()) {
				continue // the compiler takes seconds for each
			}
			k := kerneltest.EveryOp(dt, func(op ir.Op, out ir.DType) bool {
				return op&1 == half && (!dt.Storage() || kerneltest.StorageOps(op, out))
			})
			add(fmt.Sprint("ops on ", dt), k, kerneltest.NewLaunch(rand.New(rand.NewPCG(1, uint64(dt))), k, []int64{3, 37}, 2, kerneltest.Dense))
		}
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(8, seed))
		k := kerneltest.Random(rng, 12+rng.IntN(24), rng.IntN(5))
		dims := []int64{1 + rng.Int64N(6), 1 + rng.Int64N(50), 1 + rng.Int64N(40)}
		kept := len(dims)
		if k.HasRows() {
			kept = rng.IntN(3)
		}
		add(fmt.Sprint("seed ", seed), k, kerneltest.NewLaunch(rng, k, dims, kept, kerneltest.Pattern(rng.IntN(int(kerneltest.NumPatterns)))))
	}
	long := kerneltest.Random(rand.New(rand.NewPCG(8, 77)), 30, 4) // rows that fit in no cache
	add("long rows", long, kerneltest.NewLaunch(rand.New(rand.NewPCG(8, 77)), long, []int64{2, 300000}, 1, kerneltest.Dense))
	around := rowKernel(t, dotKernels["around"])
	for _, c := range dotCases[:3] {
		add("contraction, "+c.name, around, dotCase(around, c.dims, dotSizes[1], c.left, c.right, c.bias, c.residual, c.result))
	}
	for _, c := range []scatterCase{
		{n: 5000, v: 7, dt: ir.Float32, index: ir.Int32, how: ir.CombineAdd, made: true},
		{kept: []int64{40}, n: 500, v: 60, axis: 1, dt: ir.Int64, index: ir.Int64, how: ir.CombineMax},
	} {
		add("scatter", c.kernel(), c.launch(rand.New(rand.NewPCG(3, 3))))
	}
	return list
}

// noted runs kernels on a device that notes them, and returns its notes.
func noted(t *testing.T, mode runtime.CompileMode, list []shipCase) (texts []string) {
	t.Helper()
	cache := &mapCache{entries: map[string][]byte{}}
	d := opened(t, runtime.Config{Compile: mode, Threads: 2, Cache: cache})
	for i := range list {
		hold(t, d, list[i].k) // notes cover live programs only
		onDevice(t, d, list[i].k, list[i].h)
	}
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	for key := range cache.entries {
		text, ok := strings.CutPrefix(key, KindKernel+" ")
		if !ok {
			t.Errorf("without a compiler the cache was given %.30q", key)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	if told := slices.Sorted(slices.Values(d.noteTexts())); !slices.Equal(texts, told) {
		t.Errorf("%d notes in the cache, %d told", len(texts), len(told))
	}
	return texts
}

// built compiles the printed source as cgo does, and loads it.
func (src *ShipSource) built(t *testing.T, flags ...string) Library {
	t.Helper()
	cc, dir := strings.Fields(needCompiler(t)), t.TempDir()  // $CC may contain a wrapper and flags
	probe := "int " + probeSymbol + "(void) { return 0; }\n" // load needs one; the test is about the probes of the objects
	files := []string{"probe.c"}
	if err := os.WriteFile(filepath.Join(dir, "probe.c"), []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	var tables []string
	for i := range src.Objects {
		for _, f := range src.Objects[i].Files {
			name := f.Table + ".c"
			if err := os.WriteFile(filepath.Join(dir, name), []byte(f.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			files, tables = append(files, name), append(tables, f.Table)
		}
	}
	args := append(append(cc[1:], strings.Fields(ShipFlags)...), "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-fPIC", "-shared", "-o", "k.so")
	cmd := exec.Command(cc[0], append(append(append(args, flags...), files...), "-lm")...)
	cmd.Dir = dir
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, log)
	}
	handle, at, err := load(filepath.Join(dir, "k.so"), tables...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unload(handle) })
	lib := Library{Name: "test", ABI: ShipABI(), Kernels: src.Kernels}
	for ; len(at) > 0; at = at[ShipLevels:] {
		lib.Objects = append(lib.Objects, [ShipLevels]unsafe.Pointer(at))
	}
	return lib
}

// shipOnly registers a library for the duration of a test. Devices that other tests open must not
// see it, so tests that use shipOnly are not parallel.
func shipOnly(t *testing.T, l Library) {
	t.Helper()
	ship.Lock()
	before, refused := ship.kernels, ship.refused
	ship.kernels, ship.refused = nil, nil
	ship.Unlock()
	t.Cleanup(func() {
		ship.Lock()
		ship.kernels, ship.refused = before, refused
		ship.Unlock()
	})
	Ship(l)
}

// atLevel returns the library with one level only.
func (l Library) atLevel(level int) Library {
	objects := make([][ShipLevels]unsafe.Pointer, len(l.Objects))
	for i := range objects {
		objects[i][level] = l.Objects[i][level]
	}
	l.Objects = objects
	return l
}

// TestShipped runs every form of kernel as code compiled with cgo's flags, at every ISA level,
// without a compiler or a cache, and compares the bits with the oracle's.
func TestShipped(t *testing.T) {
	list := shipCases(t)
	src, err := PrintShipped("test", noted(t, runtime.CompileOff, list))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range src.Left {
		t.Errorf("not printed: %v\n%s", left.Err, left.Note)
	}
	if len(src.Objects) < 2 {
		t.Errorf("%d objects: vectors of which width are missing?", len(src.Objects))
	}
	lib := src.built(t)
	for level, name := range levelNames {
		if !hasLevel(level) {
			t.Logf("this processor has no %s", name)
			continue
		}
		shipOnly(t, lib.atLevel(level))
		for _, c := range []runtime.Config{{Compile: runtime.CompileOff, Threads: 1}, {Compile: runtime.CompileWait, Threads: 2}} {
			d := openTest(t, c)
			for i := range list {
				s := &list[i]
				compare(t, s.name, s.k, onDevice(t, d, s.k, s.h), reference(t, s.k, s.h))
				if t.Failed() {
					t.Fatalf("%s: %s\n%s", name, s.name, s.k)
				}
			}
			if s := d.Stats(); s.Shipped != s.Launches || s.Tier0 != 0 || s.Compiles != 0 || s.Fallbacks != 0 {
				t.Errorf("%s: of %d launches %d ran shipped kernels, %d in tier 0; %d compiles, %d fallbacks", name, s.Launches, s.Shipped, s.Tier0, s.Compiles, s.Fallbacks)
			}
		}
		asked := opened(t, runtime.Config{Compile: runtime.CompileNative, Tier: 1}) // gets machine code, as requested
		onDevice(t, asked, list[0].k, list[0].h)
		if s := asked.Stats(); asked.machine && (s.Shipped != 0 || s.Tier0 != 0 || s.NativeKernels != 1) {
			t.Errorf("machine code alone: %d shipped, %d in tier 0, %d made", s.Shipped, s.Tier0, s.NativeKernels)
		}
		plain := openTest(t, runtime.Config{Tier: -1})
		onDevice(t, plain, list[0].k, list[0].h)
		if s := plain.Stats(); s.Shipped != 0 || s.Tier0 != 1 {
			t.Errorf("the interpreter alone: %d shipped, %d in tier 0", s.Shipped, s.Tier0)
		}
	}
}

// TestNotesOfMachineCode checks that the notes of a device with machine code include all kernels
// that C would have run.
func TestNotesOfMachineCode(t *testing.T) {
	list := shipCases(t)
	all := noted(t, runtime.CompileBackground, list)
	for _, text := range noted(t, runtime.CompileOff, list) {
		if _, ok := slices.BinarySearch(all, text); !ok {
			t.Errorf("not noted: %s", text)
		}
	}
}

// TestShippedSource checks that Source shows the origin of code.
func TestShippedSource(t *testing.T) {
	list := shipCases(t)[:1]
	src, err := PrintShipped("test", noted(t, runtime.CompileOff, list))
	if err != nil {
		t.Fatal(err)
	}
	shipOnly(t, src.built(t).atLevel(0))
	d := openTest(t, runtime.Config{Compile: runtime.CompileOff})
	hold(t, d, list[0].k)
	onDevice(t, d, list[0].k, list[0].h)
	p, err := d.Build(list[0].k)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Source(p)
	if len(got) != 1 || got[0].Tier != "tier 1, C, compiled into the program by package test for portable" || !strings.Contains(got[0].Source, "mr_kernel(") {
		t.Errorf("%+.300v", got)
	}
}

// TestShippedRefused checks that unsuitable code is not run, that the reason is reported, and that
// the kernels run nevertheless.
func TestShippedRefused(t *testing.T) {
	list := shipCases(t)[:1]
	src, err := PrintShipped("test", noted(t, runtime.CompileOff, list))
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := src.built(t), src.built(t, "-ffast-math")
	best := 0
	for level := range levelNames {
		if hasLevel(level) {
			best = level
		}
	}
	older := right
	older.ABI = "0-0123456789abcdef"
	other := right
	other.Kernels = append([]ShippedKernel(nil), right.Kernels...)
	other.Kernels[0].Form = "0123456789abcdef"
	torn := right
	torn.Objects = nil
	nowhere := right
	nowhere.Objects = make([][ShipLevels]unsafe.Pointer, len(right.Objects))
	lower := right
	lower.Objects = append([][ShipLevels]unsafe.Pointer(nil), right.Objects...)
	lower.Objects[0][best] = wrong.Objects[0][best]
	for name, c := range map[string]struct {
		lib     Library
		want    string
		shipped int64
	}{
		"contracts":        {wrong, "contracts", 0},
		"one level wrong":  {lower, "the " + levelNames[best] + " functions", 1},
		"another ABI":      {older, "generated for the kernel interface 0-0123456789abcdef", 0},
		"another form":     {other, "printed in the form 0123456789abcdef", 0},
		"no object":        {torn, "is in no object", 0},
		"not for this CPU": {nowhere, "no code for this processor", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "one level wrong" && best == 0 {
				t.Skip("this processor has only one level")
			}
			shipOnly(t, c.lib)
			var told []error
			d, err := open(runtime.Config{Compile: runtime.CompileOff, OnError: func(err error) { told = append(told, err) }})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			hold(t, d, list[0].k)
			for range 2 {
				compare(t, name, list[0].k, onDevice(t, d, list[0].k, list[0].h), reference(t, list[0].k, list[0].h))
			}
			s := d.Stats()
			if s.Shipped != 2*c.shipped || s.Tier0 != 2-2*c.shipped || s.Fallbacks != 1 {
				t.Errorf("%d shipped, %d in tier 0, %d fallbacks", s.Shipped, s.Tier0, s.Fallbacks)
			}
			if len(told) != 1 || !errors.Is(told[0], ErrShipped) || !strings.Contains(told[0].Error(), c.want) {
				t.Errorf("told %v, want one error with %q", told, c.want)
			}
		})
	}
}

// TestPrintShippedOrder checks that the same notes give the same package.
func TestPrintShippedOrder(t *testing.T) {
	notes := noted(t, runtime.CompileOff, shipCases(t)[:6])
	one, err := PrintShipped("test", notes)
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	two, err := PrintShipped("test", append(notes, notes[0]))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(*one) != fmt.Sprint(*two) {
		t.Error("the order of the notes shows")
	}
}

// TestNotes checks that invalid notes are left out, each with a reason.
func TestNotes(t *testing.T) {
	good := noted(t, runtime.CompileOff, shipCases(t)[:1])[0]
	layout, kernel, _ := strings.Cut(strings.TrimPrefix(good, noteScope+"\n"), "\n")
	bad := []string{"", noteScope, noteScope + "\n", "ccc", layout, layout + "\n", layout + "\nrubbish", layout + "\n" + kernel + "\n", "ccc\n" + kernel, "c/c/c\n" + kernel, "cx/cc/cc\n" + kernel,
		layout + " thin cols\n" + kernel, layout + " thick\n" + kernel, " " + good}
	for i := range bad {
		if i > 4 {
			bad[i] = noteScope + "\n" + bad[i]
		}
	}
	bad = append(bad, good[1:], strings.Replace(good, "device=cpu", "device=webgpu", 1))
	src, err := PrintShipped("test", append(bad, good))
	if err != nil {
		t.Fatal(err)
	}
	if len(src.Kernels) != 1 || src.Kernels[0].Kernel != kernel || len(src.Left) != len(bad) {
		t.Errorf("%d kernels, %d left out of %d", len(src.Kernels), len(src.Left), len(bad))
	}
	for _, l := range src.Left {
		if l.Err == nil {
			t.Errorf("no reason to leave out %q", l.Note)
		}
	}
}

// TestLayoutText checks that the text of a layout contains everything that distinguishes variants.
func TestLayoutText(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		var k classKey
		n := rng.IntN(maxOperands + 1)
		for i := range n {
			for _, to := range []*[maxOperands / 32]uint64{&k.points, &k.rows, &k.second} {
				setClass(to, i, codegen.AccessClass(rng.IntN(int(codegen.NumAccesses))))
			}
		}
		for _, f := range k.flags() {
			*f = rng.IntN(2) == 0
		}
		thin := rng.IntN(2) == 0
		text := k.layout(n, thin)
		got, gotThin, err := parseLayout(text, n)
		if err != nil || got != k || gotThin != thin {
			t.Fatalf("%q: %+v %v %v, want %+v %v", text, got, gotThin, err, k, thin)
		}
	}
}

// TestForm checks that the form changes with everything that a text is printed from, also if the
// kernel's text only refers to it.
func TestForm(t *testing.T) {
	of := func(text, layout string) string {
		t.Helper()
		u, err := unitOf(noteScope + "\n" + layout + "\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		return u.form
	}
	exp := "in 0 : float64\nout 1 : float64\n%0 = load 0 : float64\n%1 = exp %0 : float64\nstore 1 %1\n"
	before := of(exp, "cc/cc/cc")
	if again := of(exp, "cc/cc/cc"); again != before {
		t.Error("two forms of one kernel")
	}
	if other := of(exp, "sc/cc/cc"); other == before {
		t.Error("the layout is not in the form")
	}
	if other := of(strings.ReplaceAll(exp, "exp", "exp2"), "cc/cc/cc"); other == before {
		t.Error("the operation is not in the form")
	}
	sin := strings.ReplaceAll(exp, "exp", "sin") // its slow path has a table
	before = of(sin, "cc/cc/cc")
	id, ok := ir.TableByName("twooverpi")
	if !ok {
		t.Fatal("no table")
	}
	table := ir.TableByID(id)
	table.Bits[0]++
	after := of(sin, "cc/cc/cc")
	table.Bits[0]--
	if before == after {
		t.Error("a changed table is not in the form")
	}
}

// TestFormFields fails when a kernel gets a new field: that field must be added to forms.
func TestFormFields(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[codegen.Schedule](): "Temps Phases",
		reflect.TypeFor[codegen.Phase]():    "Level Kernel",
		reflect.TypeFor[codegen.Temp]():     "DT Row",
		reflect.TypeFor[codegen.Kernel]():   "Operands Scalars Body Stores Reduces Denormals",
		reflect.TypeFor[codegen.Operand]():  "Kind DT Row",
		reflect.TypeFor[codegen.Store]():    "Operand Value",
		reflect.TypeFor[codegen.Reduce]():   "Op Value Operand Descending",
		reflect.TypeFor[ir.Instr]():         "Op DT Args Imm",
		reflect.TypeFor[ir.Table]():         "Name DT Bits",
		reflect.TypeFor[ir.Prog]():          "Name Params Code Results",
	} {
		var names []string
		for _, f := range reflect.VisibleFields(typ) {
			if len(f.Index) == 1 {
				names = append(names, f.Name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%v has the fields %s; formOf knows of %s", typ, got, want)
		}
	}
}
