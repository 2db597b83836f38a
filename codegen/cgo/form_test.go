package cgo

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
)

// TestSources checks that Printer covers all files of the printer.
func TestSources(t *testing.T) {
	files, err := filepath.Glob("*.[gh]*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		n++
		if _, err := sources.Open(f); err != nil {
			t.Errorf("%v: name it in form.go", err)
		}
	}
	have, err := sources.ReadDir(".")
	if err != nil || len(have) != n {
		t.Errorf("%d files in form.go, %d in the package, %v", len(have), n, err)
	}
}

// TestForm checks that different texts have different forms, and that equal units have equal forms.
func TestForm(t *testing.T) {
	kernel := func(text string) *codegen.Kernel {
		k, err := codegen.Parse(text)
		if err == nil {
			k, err = codegen.Lower(k)
		}
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	const head = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n"
	texts := []string{
		head + "%1 = neg %0 : float32\nstore 1 %1\n",
		head + "%1 = abs %0 : float32\nstore 1 %1\n",
		head + "%1 = sin %0 : float32\nstore 1 %1\n",
		head + "%1 = exp %0 : float32\nstore 1 %1\n",
		head + "%1 = const 0x1p+0 : float32\n%2 = add %0 %1 : float32\nstore 1 %2\n",
		head + "%1 = const 0x1p+1 : float32\n%2 = add %0 %1 : float32\nstore 1 %2\n",
	}
	byForm, byText := map[string]string{}, map[string]string{}
	see := func(what string, units []Unit, isa *ISA) {
		t.Helper()
		form := Form(units, isa)
		text, err := PrintUnits(units, isa)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if other, ok := byForm[form]; ok && other != text {
			t.Errorf("%s: another text has its form", what)
		}
		if other, ok := byText[text]; ok && other != form {
			t.Logf("%s: two forms of one text", what) // allowed; it costs a compilation
		}
		byForm[form], byText[text] = text, form
		if again := Form(units, isa); again != form {
			t.Errorf("%s: two forms of equal units", what)
		}
	}
	for _, text := range texts {
		k := kernel(text)
		for _, isa := range ISAs {
			for c := range codegen.NumAccesses {
				see(text, []Unit{{"mr_kernel", k, classes(k, c)}}, isa)
			}
		}
		see("another name", []Unit{{"mr_other", k, classes(k, codegen.Contiguous)}}, AVX2)
		v := classes(k, codegen.Contiguous)
		v.Guarded = true
		see("guarded", []Unit{{"mr_kernel", k, v}}, AVX2)
		v.Streams = 2
		see("streams", []Unit{{"mr_kernel", k, v}}, AVX2)
		see("two units", []Unit{{"mr_kernel_0", k, v}, {"mr_kernel_1", k, v}}, AVX2)
	}
	if len(byText) < len(texts)*(len(ISAs)+4) {
		t.Errorf("%d texts only", len(byText))
	}
	// The form has the contents of tables and sub-programs that a kernel only names.
	if form := Form([]Unit{{"mr_kernel", kernel(texts[2]), Variant{Class: make([]codegen.AccessClass, 2)}}}, AVX2); !strings.Contains(form, "\nsub ") {
		t.Errorf("no sub-program in the form of a sine:\n%s", form)
	}
}
