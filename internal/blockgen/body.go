package main

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// goBody is the code of one element. A value that is used once becomes a part of the expression
// that uses it; the others are named.
type goBody struct {
	printer *goPrinter
	params  []string
	text    strings.Builder
	prog    *ir.Prog
	names   []string // of every instruction: a name, a literal or an expression
	uses    []int
}

// maxExpression bounds the length of an expression that has no name.
const maxExpression = 90

// code prints a program and returns the expression of its result.
func (b *goBody) code(prog *ir.Prog) (string, error) {
	b.prog, b.names, b.uses = prog, make([]string, len(prog.Code)), make([]int, len(prog.Code))
	for i, in := range prog.Code {
		for _, a := range used(in) {
			if prog.Code[a].Op == ir.Param {
				b.uses[a]++ // may be read twice
			} else {
				b.uses[a] += mentions(in)
			}
		}
		if in.Op == ir.Const {
			b.names[i] = goLiteral(in.DT, in.Imm)
		}
	}
	steps := stepsOf(prog)
	loop := findLoop(prog, steps)
	for i, in := range prog.Code {
		if in.Op == ir.Param {
			b.names[i] = b.params[in.Imm]
			if b.uses[i] > 1 {
				b.define(i, b.params[in.Imm])
			}
		}
	}
	for at := 0; at < len(steps); at++ {
		if loop != nil && at == loop.start {
			if err := b.loop(loop); err != nil {
				return "", err
			}
			at += loop.period*loop.times - 1
			continue
		}
		if err := b.step(steps[at], b.args(steps[at])); err != nil {
			return "", err
		}
	}
	return b.names[prog.Results[0]], nil
}

// used returns the operands of an instruction.
func used(in ir.Instr) []ir.Ref {
	for n, a := range in.Args {
		if a == ir.None {
			return in.Args[:n:n]
		}
	}
	return in.Args[:]
}

// mentions is how often an instruction's text mentions each operand. Operands that must not be
// evaluated conditionally count twice, so that they get names.
func mentions(in ir.Instr) int {
	switch in.Op {
	case ir.FMA:
		if in.DT == ir.Float32 {
			return 2
		}
	case ir.And, ir.Or, ir.Where:
		if in.DT == ir.Bool {
			return 2
		}
	}
	return 1
}

// define names the value of an instruction.
func (b *goBody) define(i int, expression string) {
	name := fmt.Sprintf("t%d", i)
	fmt.Fprintf(&b.text, "\t\t\t%s := %s\n", name, expression)
	b.names[i] = name
}

// args returns the operands of an instruction.
func (b *goBody) args(i int) []string {
	var args []string
	for _, a := range used(b.prog.Code[i]) {
		args = append(args, b.names[a])
	}
	return args
}

// step prints one instruction, or makes it a part of the one that uses it.
func (b *goBody) step(i int, args []string) error {
	in := b.prog.Code[i]
	var dts []ir.DType
	for _, a := range used(in) {
		dts = append(dts, b.prog.Code[a].DT)
	}
	name := fmt.Sprintf("t%d", i)
	switch {
	case in.Op == ir.FMA && in.DT == ir.Float32:
		// The common case is inline: a call would cost more.
		list := strings.Join(args, ", ")
		fmt.Fprintf(&b.text, "\t\t\ts%d := mulAdd(%s)\n\t\t\t%s := float32(s%d)\n\t\t\tif ir.RoundedTwice(s%d) {\n\t\t\t\t%s = ir.FMA32(%s)\n\t\t\t}\n", i, list, name, i, i, name, list)
		b.names[i] = name
		return nil
	case in.Op == ir.Rare:
		sub, err := b.printer.sub(in.Imm)
		fmt.Fprintf(&b.text, "\t\t\t%s := %s\n\t\t\tif %s {\n\t\t\t\t%s = %s(%s)\n\t\t\t}\n", name, args[1], args[0], name, sub, strings.Join(args[2:], ", "))
		b.names[i] = name
		return err
	}
	e, err := b.expression(in, args, dts)
	if b.uses[i] > 1 || b.uses[i] > 0 && len(e) > maxExpression {
		b.define(i, e)
	} else {
		b.names[i] = e
	}
	return err
}

func (b *goBody) expression(in ir.Instr, args []string, dts []ir.DType) (string, error) {
	switch in.Op {
	case ir.FMA:
		return "math.FMA(" + strings.Join(args, ", ") + ")", nil
	case ir.Lookup:
		return b.printer.table(in.Imm) + "[" + args[0] + "]", nil
	case ir.Where:
		switch {
		case in.DT == ir.Bool:
			return fmt.Sprintf("%s && %s || !%s && %s", group(args[0]), group(args[1]), group(args[0]), group(args[2])), nil
		case in.DT.IsFloat() && !in.DT.Storage():
			return fmt.Sprintf("pick%d(%s)", in.DT.Bits(), strings.Join(args, ", ")), nil
		}
		return "pick(" + strings.Join(args, ", ") + ")", nil
	}
	return goSpell(in, args, dts)
}
