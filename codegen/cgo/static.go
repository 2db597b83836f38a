package cgo

import "strings"

// Width is the bytes of the widest value that units compute in vectors. [PrintUnits] chooses the
// lanes of all units by it, so units of different widths should be printed apart.
func Width(units []Unit) (int, error) {
	_, width, err := printersOf(units)
	return width, err
}

// PrintStatic is [PrintUnits] for a file that cgo compiles with a program. cgo allows no flags that
// name instructions or forbid contraction, so the text asks for both. (Contraction is also off with
// -std=c11, which cgo allows.) C code after the units must be passed as tail, which is then
// compiled in the same way. If the compiler or the architecture does not have the ISA, the text is
// empty after preprocessing.
func PrintStatic(units []Unit, isa *ISA, tail string) (string, error) {
	text, err := PrintUnits(units, isa)
	if err != nil {
		return "", err
	}
	return staticHead(isa) + text + tail + staticEnd(isa), nil
}

// X86 is the condition under which the compiler knows ISAs that have a Target.
const X86 = "(defined __x86_64__ || defined __i386__) && defined __GNUC__"

// staticHead asks for the arithmetic that the flags of tier 1 ask for, and for the ISA. Only
// inlined functions pass vectors wider than a register, but GCC warns about them, so it turns this
// warning off.
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
