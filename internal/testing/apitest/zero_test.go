package apitest

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/npy"
	"github.com/millrace-go/millrace/safetensors"
)

// publicFuncs are the functions of the public packages; generic ones for one type.
var publicFuncs = func() map[string]any {
	all := maps.Clone(otherFuncs)
	for _, o := range optable.All() {
		if o.Func != nil {
			all[o.Name] = o.Func
		}
	}
	return all
}()

// otherFuncs are those that are not in optable.
var otherFuncs = map[string]any{
	"Drivers": millrace.Drivers, "ExportPlans": millrace.ExportPlans,
	"UsePlans": millrace.UsePlans, "Report": millrace.Report, "NewBF16": millrace.NewBF16, "NewF16": millrace.NewF16,
	"Default": millrace.Default, "Open": millrace.Open, "OpenOptions": millrace.OpenOptions, "ParseOptions": millrace.ParseOptions,
	"At": millrace.At, "R": millrace.R, "NewRecording": millrace.NewRecording, "NewTraceWriter": millrace.NewTraceWriter,
	"SetInput":     millrace.SetInput[float32],
	"LogTrace":     millrace.LogTrace,
	"NewGenerator": millrace.NewGenerator,
	"npy.Load":     npy.Load, "npy.LoadOn": npy.LoadOn, "npy.Read": npy.Read, "npy.ReadOn": npy.ReadOn, "npy.Stat": npy.Stat,
	"npy.Save": npy.Save, "npy.Write": npy.Write, "npy.Open": npy.Open, "npy.NewFile": npy.NewFile, "npy.Create": npy.Create, "npy.OpenArchive": npy.OpenArchive, "npy.NewArchive": npy.NewArchive,
	"npy.LoadArchive": npy.LoadArchive, "npy.LoadArchiveOn": npy.LoadArchiveOn, "npy.SaveArchive": npy.SaveArchive,
	"npy.SaveCompressed": npy.SaveCompressed, "npy.WriteArchive": npy.WriteArchive,
	"safetensors.Open": safetensors.Open, "safetensors.NewFile": safetensors.NewFile, "safetensors.Load": safetensors.Load,
	"safetensors.LoadOn": safetensors.LoadOn, "safetensors.Save": safetensors.Save, "safetensors.Write": safetensors.Write,
}

// publicTypes are the zero values of the types with methods: pointers and plain values.
var publicTypes = map[string]any{
	"Tensor": new(millrace.Tensor), "Device": new(millrace.Device), "Stream": new(millrace.Stream), "Scope": new(millrace.Scope),
	"Recording": new(millrace.Recording), "BoundRecording": new(millrace.BoundRecording), "TraceWriter": new(millrace.TraceWriter), "Range": new(millrace.Range),
	"F16": new(millrace.F16), "BF16": new(millrace.BF16), "Window": new(millrace.Window), "Padding": new(millrace.Padding),
	"Generator": new(millrace.Generator), "PrintOptions": new(millrace.PrintOptions),
	"npy.Archive": new(npy.Archive), "npy.File": new(npy.File), "npy.Writer": new(npy.Writer), "safetensors.File": new(safetensors.File),
	"npy.Info": new(npy.Info), "safetensors.Info": new(safetensors.Info),
	// Aliases of the engine's types, whose methods become public with them.
	"Options": new(millrace.Options), "DType": new(millrace.DType), "OpError": new(millrace.OpError),
	"CompileError": new(millrace.CompileError),
}

// quiet are functions for which a zero value is valid.
var quiet = func() map[string]bool {
	all := maps.Clone(otherQuiet)
	for _, o := range optable.All() {
		if o.MayBeNil {
			all[o.Name] = true
		}
	}
	return all
}()

// otherQuiet are those that are not in optable.
var otherQuiet = map[string]bool{
	"Device.Close": true, "Stream.Close": true, "BoundRecording.Close": true, "npy.Archive.Close": true, "npy.File.Close": true, "npy.Writer.Close": true, "safetensors.File.Close": true, "Options.Validate": true,
	"Device.ForeignPlans": true, "OpError.Unwrap": true, "CompileError.Unwrap": true,
	"Generator.MarshalBinary": true, // the zero Generator is valid
}

// TestZeroValues: every function and method of the public packages takes every zero value, nil and
// number without a panic, and a result without a value has an error.
func TestZeroValues(t *testing.T) {
	t.Chdir(t.TempDir()) // Save writes to a file named by an argument
	z := newZeros(t)
	for name, f := range publicFuncs {
		for k := range 40 {
			z.call(name, reflect.ValueOf(f), false, k)
		}
	}
	for name, v := range publicTypes {
		zero := reflect.ValueOf(v)
		receivers := []reflect.Value{zero}
		if _, is := v.(error); !is && reflect.TypeOf(v).Elem().NumMethod() == 0 { // else a nil one cannot be a receiver
			receivers = append(receivers, reflect.Zero(zero.Type()))
		}
		for m := range zero.Type().Methods() {
			for _, r := range receivers {
				for k := range 20 {
					z.call(name+"."+m.Name, r.Method(m.Index), true, k)
				}
			}
		}
	}
	for name, good := range z.good {
		for m := range good.Type().Methods() {
			if m.Name == "Release" || m.Name == "Set" { // of the one receiver
				continue
			}
			for k := range 40 {
				z.call(name+"."+m.Name, good.Method(m.Index), false, k)
			}
		}
	}
}

// zeros makes arguments.
type zeros struct {
	t      *testing.T
	rng    *rand.Rand
	tensor *millrace.Tensor
	good   map[string]reflect.Value // receivers that are not zero values
	places []millrace.Place         // invalid ones
	told   map[string]bool          // names of failed calls: one report is enough
}

func newZeros(t *testing.T) *zeros {
	dev := open(t, millrace.Options{Tier: millrace.TierInterpreter, Threads: 1, MemoryLimit: 16 << 20})
	gone := open(t, millrace.Options{Threads: 1})
	closed := dev.NewStream()
	closed.Close()
	var ended, open *millrace.Scope
	if err := dev.Scope(func(sc *millrace.Scope) error { ended = sc; return nil }); err != nil {
		t.Fatal(err)
	}
	block := make(chan struct{})
	ready := make(chan struct{})
	go dev.NewStream().Scope(func(sc *millrace.Scope) error { open = sc; close(ready); <-block; return nil })
	<-ready
	t.Cleanup(func() { close(block) })
	z := &zeros{t: t, told: map[string]bool{}, rng: rand.New(rand.NewPCG(1, 2)), tensor: millrace.FromSliceOn(dev, []float32{1, 2, 3, 4, 5, 6}, 2, 3)}
	z.good = map[string]reflect.Value{"Tensor": reflect.ValueOf(z.tensor), "Scope": reflect.ValueOf(open)}
	z.places = []millrace.Place{nil, (*millrace.Device)(nil), (*millrace.Stream)(nil), (*millrace.Scope)(nil),
		new(millrace.Device), new(millrace.Stream), new(millrace.Scope), ended, closed, gone}
	gone.Close()
	return z
}

var (
	placeType  = reflect.TypeFor[millrace.Place]()
	tensorType = reflect.TypeFor[*millrace.Tensor]()
	errorType  = reflect.TypeFor[error]()
)

// arg is an argument of a type, most often a zero value. bad says that none can be made.
func (z *zeros) arg(t reflect.Type) (v reflect.Value, bad bool) {
	pick := func(list ...any) reflect.Value { return reflect.ValueOf(list[z.rng.IntN(len(list))]).Convert(t) }
	switch {
	case t == placeType:
		v = reflect.New(t).Elem()
		if p := z.places[z.rng.IntN(len(z.places))]; p != nil {
			v.Set(reflect.ValueOf(p))
		}
		return v, true
	case t == tensorType:
		switch z.rng.IntN(3) {
		case 0:
			return reflect.Zero(t), true
		case 1:
			return reflect.ValueOf(new(millrace.Tensor)), true
		}
		return reflect.ValueOf(z.tensor), false
	case t == reflect.TypeFor[*millrace.Stream](), t == reflect.TypeFor[*millrace.Device](), t == reflect.TypeFor[*millrace.Scope]():
		return pick(reflect.Zero(t).Interface(), reflect.New(t.Elem()).Interface()), true
	case t == reflect.TypeFor[context.Context]():
		return reflect.Zero(t), false
	case t.Kind() == reflect.Slice && z.rng.IntN(2) == 0:
		v = reflect.MakeSlice(t, 1+z.rng.IntN(2), 2)
		for i := range v.Len() {
			x, b := z.arg(t.Elem())
			v.Index(i).Set(x)
			bad = bad || b
		}
		return v, bad
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return pick(0, -1, 1, 2, math.MaxInt, math.MinInt), false
	case t.Kind() == reflect.Uint8: // a dtype, a mode, a byte
		return pick(uint8(0), uint8(11), uint8(200)), false
	case t.Kind() == reflect.Float64:
		return pick(0.0, 1.5, math.NaN(), math.Inf(1)), false
	}
	return reflect.Zero(t), false
}

// call calls f with arguments. zero says that its receiver is a zero value.
func (z *zeros) call(name string, f reflect.Value, zero bool, k int) {
	t := f.Type()
	var args []reflect.Value
	bad := zero && !quiet[name]
	for i := range t.NumIn() {
		a, b := z.arg(t.In(i))
		args, bad = append(args, a), bad || b && !quiet[name]
	}
	said := func() string {
		var b strings.Builder
		for _, a := range args {
			fmt.Fprintf(&b, " %#v", a)
		}
		return fmt.Sprintf("%s (zero receiver: %v) of%s", name, zero, b.String())
	}
	defer func() {
		if r := recover(); r != nil {
			z.tell(name, "%s: panic: %v\n%s", said(), r, panicAt(string(debug.Stack())))
		}
	}()
	var out []reflect.Value
	if t.IsVariadic() {
		out = f.CallSlice(args)
	} else {
		out = f.Call(args)
	}
	failed, can := false, false
	for _, o := range out {
		switch x := o.Interface().(type) {
		case *millrace.Tensor:
			can = can || name != "Scope.Keep"
			if x != nil && x.Err() != nil {
				failed = true
			}
		case *millrace.Device:
			if x != nil && strings.HasPrefix(name, "Open") {
				x.Close()
			}
		}
		if o.Type() == errorType {
			can = true
			failed = failed || !o.IsNil()
		}
	}
	if bad && can && !failed {
		z.tell(name, "%s: no error", said())
	}
}

func (z *zeros) tell(name, format string, args ...any) {
	if !z.told[name] {
		z.told[name] = true
		z.t.Errorf(format, args...)
	}
}

func panicAt(s string) string {
	_, s, _ = strings.Cut(s, "panic(")
	lines := strings.Split(s, "\n")
	return strings.Join(lines[:min(len(lines), 10)], "\n")
}

// TestZeroValuesIsComplete: the lists name everything.
func TestZeroValuesIsComplete(t *testing.T) {
	for dir, prefix := range map[string]string{"../../..": "", "../../../npy": "npy.", "../../../safetensors": "safetensors."} {
		pkgs, err := parser.ParseDir(token.NewFileSet(), dir, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range pkgs {
			for file, f := range pkg.Files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				for _, d := range f.Decls {
					fn, ok := d.(*ast.FuncDecl)
					if !ok || !fn.Name.IsExported() {
						continue
					}
					if fn.Recv == nil {
						if publicFuncs[prefix+fn.Name.Name] == nil {
							t.Errorf("%s%s is not in the list", prefix, fn.Name.Name)
						}
						continue
					}
					typ := fn.Recv.List[0].Type
					if p, ok := typ.(*ast.StarExpr); ok {
						typ = p.X
					}
					if id, ok := typ.(*ast.Ident); ok && id.IsExported() && publicTypes[prefix+id.Name] == nil {
						t.Errorf("%s%s is not in the list", prefix, id.Name)
					}
				}
			}
		}
	}
}
