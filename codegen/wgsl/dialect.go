package wgsl

import "github.com/millrace-go/millrace/codegen/shader"

// Dialect is WGSL. All bindings are in group 0, and the entry point is "main".
var Dialect = &shader.Dialect{
	Name: "wgsl",

	Types: map[string]string{
		"f32": "f32", "i32": "i32", "u32": "u32", "bool": "bool", "wide": "wide",
		"vec4f32": "vec4<f32>", "vec4i32": "vec4<i32>", "vec4u32": "vec4<u32>", "vec4bool": "vec4<bool>",
	},
	Ops: map[string]string{
		"bits": "bitcast<$0>($1)",
		"lt":   "$0 < $1", "le": "$0 <= $1", "gt": "$0 > $1", "ge": "$0 >= $1", "eq": "$0 == $1", "ne": "$0 != $1",
		"and": "$0 & $1", "or": "$0 | $1", "xor": "$0 != $1", "not": "!$0",
		"rsqrt": "inverseSqrt($0)",
		"load":  "atomicLoad(&$0)", "store": "atomicStore(&$0, $1)", "most": "atomicMax(&$0, $1)",
	},

	Let:     "let $0 = $2;",
	Var:     "var $0 = $2;",
	Declare: "var $0 : $1;",
	Array:   "var $0 : array<$1, $2>;",
	For:     "for (var $0 = $1; $2; $0 = $3) {",
	Func:    "fn $0($1) -> $2 {",
	Proc:    "fn $0($1) {",
	Param:   "$0 : $1",
	Barrier: "workgroupBarrier();",

	Invocations: "@compute @workgroup_size($0)\nfn main(@builtin(global_invocation_id) id : vec3<u32>) {",
	Groups:      "@compute @workgroup_size($0)\nfn main(@builtin(workgroup_id) id : vec3<u32>, @builtin(local_invocation_index) lane : u32) {",

	Read:      "@group(0) @binding($0) var<storage, read> $1 : array<$2>;",
	ReadWrite: "@group(0) @binding($0) var<storage, read_write> $1 : array<$2>;",
	Faults:    "@group(0) @binding($0) var<storage, read_write> $1 : array<atomic<u32>>;",
	Words:     "@group(0) @binding($0) var<uniform> p : array<vec4<u32>, $1>;",
	Private:   "var<private> $0 : $1;",
	Shared:    "var<workgroup> $0 : array<$1, $2>;",
	Table:     "var<private> $0 : array<$1, $2> = array<$1, $2>($3);",
	Wide:      "struct wide { l : $0, h : $0 }",
}
