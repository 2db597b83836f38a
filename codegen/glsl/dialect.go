package glsl

import "github.com/millrace-go/millrace/codegen/shader"

// Dialect is GLSL 4.30. Storage buffers are bound by the numbers of their bindings, in the order of
// a shader's list; run-time words are uniform block 0.
var Dialect = &shader.Dialect{
	Name:      "glsl",
	Header:    "#version 430 core\n",
	Subgroups: "#extension GL_KHR_shader_subgroup_arithmetic : require\n#extension GL_KHR_shader_subgroup_vote : require\n",
	Shuffles:  "#extension GL_KHR_shader_subgroup_shuffle : require\n#extension GL_KHR_shader_subgroup_shuffle_relative : require\n",
	Clusters:  "#extension GL_KHR_shader_subgroup_clustered : require\n",
	Helpers:   helpers + "\n",

	Types: map[string]string{
		"f32": "float", "i32": "int", "u32": "uint", "bool": "bool", "wide": "wide",
		"vec4f32": "vec4", "vec4i32": "ivec4", "vec4u32": "uvec4", "vec4bool": "bvec4",
	},
	Ops: map[string]string{
		"select": "($2 ? $1 : $0)", "select4": "pick($0, $1, $2)",
		"bits": "as_$0($1)",
		"lt":   "$0 < $1", "le": "$0 <= $1", "gt": "$0 > $1", "ge": "$0 >= $1", "eq": "$0 == $1", "ne": "$0 != $1",
		"lt4": "lessThan($0, $1)", "le4": "lessThanEqual($0, $1)", "gt4": "greaterThan($0, $1)", "ge4": "greaterThanEqual($0, $1)",
		"eq4": "equal($0, $1)", "ne4": "notEqual($0, $1)",
		"and": "$0 && $1", "or": "$0 || $1", "xor": "$0 != $1", "not": "!$0",
		"and4": "both($0, $1)", "or4": "either($0, $1)", "xor4": "notEqual($0, $1)", "not4": "not($0)",
		"round": "roundEven($0)", "rsqrt": "inversesqrt($0)",
		"load": "atomicOr($0, 0u)", "store": "atomicExchange($0, $1)", "most": "atomicMax($0, $1)",
		"subgroups": "gl_NumSubgroups", "subgroup": "gl_SubgroupID", "members": "gl_SubgroupSize", "member": "gl_SubgroupInvocationID",
	},

	Let:     "precise $1 $0 = $2;",
	Var:     "precise $1 $0 = $2;",
	Declare: "precise $1 $0;",
	Array:   "$1 $0[$2];",
	For:     "for (uint $0 = $1; $2; $0 = $3) {",
	Func:    "$2 $0($1) {",
	Proc:    "void $0($1) {",
	Param:   "$1 $0",
	Barrier: "memoryBarrierShared(); barrier();",

	Invocations: "layout(local_size_x = $0) in;\nvoid main() {\n\tuvec3 id = gl_GlobalInvocationID;",
	Groups:      "layout(local_size_x = $0) in;\nvoid main() {\n\tuvec3 id = gl_WorkGroupID;\n\tuint lane = gl_LocalInvocationIndex;",

	Read:      "layout(std430, binding = $0) restrict readonly buffer Buffer$0 { $2 $1[]; };",
	ReadWrite: "layout(std430, binding = $0) restrict buffer Buffer$0 { $2 $1[]; };",
	Faults:    "layout(std430, binding = $0) coherent buffer Buffer$0 { uint $1[]; };",
	Words:     "layout(std140, binding = 0) uniform Words { uvec4 p[$1]; };",
	Private:   "$1 $0;",
	Shared:    "shared $1 $0[$2];",
	Table:     "const $1 $0[$2] = $1[$2]($3);",
	Wide:      "struct wide { $0 l; $0 h; };",
}

// helpers are operations that other languages have as operators: the bits of one type as another,
// and selection and logic on vectors of bools. Their names lack the prefix of package shader's
// helpers, because that package copies prefixed helpers for code of one lane.
const helpers = `
float as_float(float x) { return x; }
float as_float(int x) { return intBitsToFloat(x); }
float as_float(uint x) { return uintBitsToFloat(x); }
int as_int(float x) { return floatBitsToInt(x); }
int as_int(int x) { return x; }
int as_int(uint x) { return int(x); }
uint as_uint(float x) { return floatBitsToUint(x); }
uint as_uint(int x) { return uint(x); }
uint as_uint(uint x) { return x; }
vec4 as_vec4(vec4 x) { return x; }
vec4 as_vec4(ivec4 x) { return intBitsToFloat(x); }
vec4 as_vec4(uvec4 x) { return uintBitsToFloat(x); }
ivec4 as_ivec4(vec4 x) { return floatBitsToInt(x); }
ivec4 as_ivec4(ivec4 x) { return x; }
ivec4 as_ivec4(uvec4 x) { return ivec4(x); }
uvec4 as_uvec4(vec4 x) { return floatBitsToUint(x); }
uvec4 as_uvec4(ivec4 x) { return uvec4(x); }
uvec4 as_uvec4(uvec4 x) { return x; }
bvec4 both(bvec4 x, bvec4 y) { return bvec4(x.x && y.x, x.y && y.y, x.z && y.z, x.w && y.w); }
bvec4 either(bvec4 x, bvec4 y) { return bvec4(x.x || y.x, x.y || y.y, x.z || y.z, x.w || y.w); }
vec4 pick(vec4 no, vec4 yes, bvec4 c) { return mix(no, yes, c); }
ivec4 pick(ivec4 no, ivec4 yes, bvec4 c) { return ivec4(c.x ? yes.x : no.x, c.y ? yes.y : no.y, c.z ? yes.z : no.z, c.w ? yes.w : no.w); }
uvec4 pick(uvec4 no, uvec4 yes, bvec4 c) { return uvec4(c.x ? yes.x : no.x, c.y ? yes.y : no.y, c.z ? yes.z : no.z, c.w ? yes.w : no.w); }
bvec4 pick(bvec4 no, bvec4 yes, bvec4 c) { return bvec4(c.x ? yes.x : no.x, c.y ? yes.y : no.y, c.z ? yes.z : no.z, c.w ? yes.w : no.w); }
`
