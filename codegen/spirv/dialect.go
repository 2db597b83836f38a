package spirv

import "github.com/millrace-go/millrace/codegen/shader"

// Dialect is the language that [Compile] reads.
var Dialect = &shader.Dialect{
	Name:      "spirv",
	Subgroups: "subgroups;\n",
	Shuffles:  "shuffles;\n",
	Clusters:  "clusters;\n",
	Matrices:  "matrices $0 $1 $2 $3 f32;",

	Types: map[string]string{
		"f32": "f32", "i32": "i32", "u32": "u32", "bool": "bool", "wide": "wide",
		"vec4f32": "vec4f32", "vec4i32": "vec4i32", "vec4u32": "vec4u32", "vec4bool": "vec4bool",
		"vec4f16": "vec4f16", "vec4bf16": "vec4bf16", "mata": "mata", "matb": "matb", "matc": "matc",
		"u16": "u16", "u8": "u8", "vec4u16": "vec4u16", "vec4u8": "vec4u8",
	},

	Let:     "let $1 $0 = $2;",
	Var:     "var $1 $0 = $2;",
	Declare: "var $1 $0;",
	Array:   "array $0 $1 $2;",
	For:     "for ($0 = $1; $2; $3) {",
	Func:    "func $0($1) $2 {",
	Proc:    "func $0($1) {",
	Param:   "$0 $1",
	Barrier: "barrier;",

	Invocations: "main invocations $0 {",
	Groups:      "main groups $0 {",

	Read:      "read $0 $1 $2;",
	ReadWrite: "write $0 $1 $2;",
	Faults:    "atomic $0 $1 u32;",
	Words:     "words $0 $1;",
	Private:   "private $0 $1;",
	Shared:    "shared $0 $1 $2;",
	Table:     "table $0 $1 $2 $3;",
	Wide:      "wide $0;",
}
