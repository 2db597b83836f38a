package main

import (
	"bytes"
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/millrace-go/millrace/runtime/cpu"
)

// Packages that generated code imports.
const (
	rootPath = "github.com/millrace-go/millrace"
	cpuPath  = rootPath + "/runtime/cpu"
)

// genPlansGo returns the file that registers the plans.
func genPlansGo(g *generated) ([]byte, error) {
	f := jen.NewFile(g.name)
	f.HeaderComment(genBy)
	for _, line := range []string{
		fmt.Sprintf("Package %s holds %d plans of Millrace, and %d kernels where it is built with cgo.", g.name, g.plans, g.kernels),
		"Programs import it for its side effect: what they hold is not looked for, tuned or",
		"compiled when the program runs.",
	} {
		f.PackageComment(line)
	}
	f.ImportName(rootPath, "millrace")
	f.Anon("embed")
	f.Comment("//go:embed " + genBundle)
	f.Var().Id("plans").Index().Byte()
	f.Line()
	f.Comment("Err says why the plans, or some of them, are not used; nil where all are.")
	f.Var().Id("Err").Op("=").Qual(rootPath, "UsePlans").Call(jen.Id("plans"))
	return render(f)
}

// genKernelsGo returns the file that registers the kernels.
func genKernelsGo(name string, src *cpu.ShipSource) ([]byte, error) {
	f := jen.NewFile(name)
	f.HeaderComment(genBuild)
	f.HeaderComment(genBy)
	f.ImportName(cpuPath, "cpu")
	f.CgoPreamble(genPreamble(src))
	f.Func().Id("init").Params().Block(
		jen.Id("lib").Op(":=").Qual(cpuPath, "Library").Values(jen.Dict{
			jen.Id("Name"):    jen.Lit(name),
			jen.Id("ABI"):     jen.Lit(cpu.ShipABI()),
			jen.Id("Kernels"): jen.Id("kernels"),
		}),
		jen.For(jen.Id("object").Op(":=").Range().Lit(len(src.Objects))).Block(
			jen.Var().Id("levels").Index(jen.Qual(cpuPath, "ShipLevels")).Qual("unsafe", "Pointer"),
			jen.For(jen.Id("level").Op(":=").Range().Id("levels")).Block(
				jen.Id("levels").Index(jen.Id("level")).Op("=").Qual("unsafe", "Pointer").Call(
					jen.Qual("C", "table").Call(jen.Qual("C", "int").Call(jen.Id("object")), jen.Qual("C", "int").Call(jen.Id("level"))))),
			jen.Id("lib").Dot("Objects").Op("=").Append(jen.Id("lib").Dot("Objects"), jen.Id("levels")),
		),
		jen.Qual(cpuPath, "Ship").Call(jen.Id("lib")),
	)
	f.Line()
	f.Var().Id("kernels").Op("=").Index().Qual(cpuPath, "ShippedKernel").ValuesFunc(func(list *jen.Group) {
		for i := range src.Kernels {
			k := &src.Kernels[i]
			list.Line().Values(
				jen.Line().Id("Kernel").Op(":").Add(literal(k.Kernel)),
				jen.Line().Id("Layout").Op(":").Lit(k.Layout),
				jen.Line().Id("Form").Op(":").Lit(k.Form),
				jen.Line().Id("Object").Op(":").Lit(k.Object),
				jen.Line().Id("First").Op(":").Lit(k.First),
				jen.Line().Id("Phases").Op(":").Lit(k.Phases),
				jen.Line(),
			)
		}
		list.Line()
	})
	return render(f)
}

// literal prints a text of several lines as a raw string.
func literal(text string) *jen.Statement { return jen.Op("`" + text + "`") }

func render(f *jen.File) ([]byte, error) {
	var b bytes.Buffer
	if err := f.Render(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
