package cgo

import "strings"

// Width is the bytes of the widest value that units compute in vectors, by which
// [PrintUnits] chooses the lanes of all of them: units of different widths are
// better printed apart.
func Width(units []Unit) (int, error) {
	_, width, err := printersOf(units)
	return width, err
}

// PrintStatic is [PrintUnits] for a file that is compiled with a program, by cgo,
// which lets no flags through that name instructions or forbid contraction:
// both are asked for in the text. Contraction is off by -std=c11, too, which
// cgo takes. What is behind the units must follow as tail, so that it is
// compiled in the same way. Where the compiler or the architecture does not
// know the ISA the text is empty.
func PrintStatic(units []Unit, isa *ISA, tail string) (string, error) {
	text, err := PrintUnits(units, isa)
	if err != nil {
		return "", err
	}
	return staticHead(isa) + text + tail + staticEnd(isa), nil
}

// X86 is the condition under which the compiler knows ISAs that have a Target.
const X86 = "(defined __x86_64__ || defined __i386__) && defined __GNUC__"

// staticHead asks for arithmetic as the flags of tier 1 do, and for the ISA.
// Vectors wider than a register are passed by inlined functions only, of which
// GCC warns all the same.
func staticHead(isa *ISA) string {
	var b strings.Builder
	if isa.Target != "" {
		b.WriteString("#if " + X86 + "\n")
	}
	b.WriteString("#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n#elif defined __GNUC__\n" +
		"#pragma GCC optimize(\"no-trapping-math\", \"no-math-errno\", \"fp-contract=off\")\n" +
		"#pragma GCC diagnostic ignored \"-Wpsabi\"\n#endif\n")
	if isa.Target != "" {
		b.WriteString("#ifdef __clang__\n#pragma clang attribute push(__attribute__((target(\"" + isa.Target + "\"))), apply_to = function)\n" +
			"#else\n#pragma GCC target(\"" + isa.Target + "\")\n#endif\n")
	}
	return b.String() + "\n"
}

func staticEnd(isa *ISA) string {
	if isa.Target == "" {
		return ""
	}
	return "\n#ifdef __clang__\n#pragma clang attribute pop\n#endif\n#endif\n"
}
