package spirv

// Numbers of the SPIR-V specification, as far as they are used here.

// Instructions.
const (
	opExtension, opExtInstImport, opExtInst, opMemoryModel, opEntryPoint, opExecutionMode, opCapability = 10, 11, 12, 14, 15, 16, 17

	opTypeVoid, opTypeBool, opTypeInt, opTypeFloat, opTypeVector                 = 19, 20, 21, 22, 23
	opTypeArray, opTypeRuntimeArray, opTypeStruct, opTypePointer, opTypeFunction = 28, 29, 30, 32, 33
	opConstantTrue, opConstantFalse, opConstant, opConstantComposite             = 41, 42, 43, 44

	opFunction, opFunctionParameter, opFunctionEnd, opFunctionCall = 54, 55, 56, 57
	opVariable, opLoad, opStore, opAccessChain                     = 59, 61, 62, 65
	opDecorate, opMemberDecorate                                   = 71, 72
	opVectorShuffle, opCompositeConstruct, opCompositeExtract      = 79, 80, 81

	opConvertFToU, opConvertFToS, opConvertSToF, opConvertUToF                 = 109, 110, 111, 112
	opUConvert, opFConvert, opBitcast                                          = 113, 115, 124
	opSNegate, opFNegate                                                       = 126, 127
	opIAdd, opFAdd, opISub, opFSub, opIMul, opFMul, opUDiv, opSDiv, opFDiv     = 128, 129, 130, 131, 132, 133, 134, 135, 136
	opUMod, opSRem                                                             = 137, 138
	opAny, opAll                                                               = 154, 155
	opLogicalEqual, opLogicalNotEqual, opLogicalOr, opLogicalAnd, opLogicalNot = 164, 165, 166, 167, 168
	opSelect, opIEqual, opINotEqual                                            = 169, 170, 171
	opUGreaterThan, opSGreaterThan, opUGreaterThanEqual, opSGreaterThanEqual   = 172, 173, 174, 175
	opULessThan, opSLessThan, opULessThanEqual, opSLessThanEqual               = 176, 177, 178, 179
	opFOrdEqual, opFUnordNotEqual, opFOrdLessThan, opFOrdGreaterThan           = 180, 183, 184, 186
	opFOrdLessThanEqual, opFOrdGreaterThanEqual                                = 188, 190
	opShiftRightLogical, opShiftRightArithmetic, opShiftLeftLogical            = 194, 195, 196
	opBitwiseOr, opBitwiseXor, opBitwiseAnd, opNot                             = 197, 198, 199, 200
	opControlBarrier, opAtomicLoad, opAtomicStore, opAtomicUMax                = 224, 227, 228, 239
	opLoopMerge, opSelectionMerge, opLabel, opBranch, opBranchConditional      = 246, 247, 248, 249, 250
	opReturn, opReturnValue                                                    = 253, 254
	opGroupElect, opGroupAll, opGroupAny                                       = 333, 334, 335
	opGroupShuffle, opGroupShuffleXor, opGroupShuffleUp                        = 345, 346, 347
	opGroupIAdd, opGroupFAdd, opGroupIMul, opGroupFMul                         = 349, 350, 351, 352
	opGroupSMin, opGroupUMin, opGroupSMax, opGroupUMax                         = 353, 354, 356, 357
	opTypeMatrix, opMatrixLoad, opMatrixStore, opMatrixMulAdd                  = 4456, 4457, 4458, 4459
)

// Storage classes.
const classInput, classUniform, classWorkgroup, classPrivate, classFunction, classPush, classStorage = 1, 2, 4, 6, 7, 9, 12

// Decorations.
const (
	asBlock, asArrayStride, asBuiltIn, asNonWritable, asBinding, asDescriptorSet, asOffset, asNoContraction = 2, 6, 11, 24, 33, 34, 35, 42
)

// Inputs of an invocation.
const (
	inNumSubgroups, inSubgroupID, inWorkgroupID, inGlobalInvocationID, inLocalInvocationIndex = 38, 40, 26, 28, 29
	inSubgroupSize, inSubgroupLocalInvocationID                                               = 36, 41
)

// Capabilities.
const (
	canShader, canFloat16, canGroups, canGroupVote, canGroupArithmetic    = 1, 9, 61, 62, 63
	canGroupShuffle, canGroupShuffleRelative, canGroupClustered           = 65, 66, 67
	canVulkanMemory, canMatrices, canBFloat16, canBFloat16Matrices        = 5345, 6022, 5116, 5118
	canStore16, canStore8                                                 = 4433, 4448
	canDenormPreserve, canSignedZeroInfNanPreserve, canRoundingModeRTE    = 4464, 4466, 4467
	modeDenormPreserve, modeSignedZeroInfNanPreserve, modeRoundingModeRTE = 4459, 4461, 4462
	modeLocalSize                                                         = 17
)

// Scopes and memory semantics.
const scopeDevice, scopeWorkgroup, scopeSubgroup, scopeQueue, semanticsNone, semanticsWorkgroup = 1, 2, 3, 5, 0, 0x108

// Memory operands of Vulkan's memory model: other invocations see a store, and a load sees theirs.
const makeAvailable, makeVisible = 0x28, 0x30

// shuffles are the operations by which an invocation reads a value of another one of its subgroup.
var shuffles = map[string]uint32{"Shuffle": opGroupShuffle, "ShuffleXor": opGroupShuffleXor, "ShuffleUp": opGroupShuffleUp}

// How a subgroup combines its values.
const groupReduce, groupExclusive, groupClustered = 0, 2, 3

// codes are the instructions of an operation for floats, signed and unsigned numbers, and bools; 0
// where there is none.
type codes struct{ float, signed, unsigned, boolean uint32 }

func (c codes) of(k kind) uint32 {
	switch k {
	case float:
		return c.float
	case signed:
		return c.signed
	case unsigned:
		return c.unsigned
	case boolean:
		return c.boolean
	}
	return 0
}

// binding is the precedence of each binary operator.
var binding = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

// operators are the binary operators. Both operands of && and || are evaluated.
var operators = map[string]codes{
	"+": {opFAdd, opIAdd, opIAdd, 0}, "-": {opFSub, opISub, opISub, 0}, "*": {opFMul, opIMul, opIMul, 0},
	"/": {opFDiv, opSDiv, opUDiv, 0}, "%": {0, opSRem, opUMod, 0},
	"&": {0, opBitwiseAnd, opBitwiseAnd, opLogicalAnd}, "|": {0, opBitwiseOr, opBitwiseOr, opLogicalOr},
	"^": {0, opBitwiseXor, opBitwiseXor, opLogicalNotEqual}, "&&": {boolean: opLogicalAnd}, "||": {boolean: opLogicalOr},
	"<<": {0, opShiftLeftLogical, opShiftLeftLogical, 0}, ">>": {0, opShiftRightArithmetic, opShiftRightLogical, 0},
}

// comparisons are the binary operators whose result is a bool.
var comparisons = map[string]codes{
	"==": {opFOrdEqual, opIEqual, opIEqual, opLogicalEqual}, "!=": {opFUnordNotEqual, opINotEqual, opINotEqual, opLogicalNotEqual},
	"<": {opFOrdLessThan, opSLessThan, opULessThan, 0}, "<=": {opFOrdLessThanEqual, opSLessThanEqual, opULessThanEqual, 0},
	">": {opFOrdGreaterThan, opSGreaterThan, opUGreaterThan, 0}, ">=": {opFOrdGreaterThanEqual, opSGreaterThanEqual, opUGreaterThanEqual, 0},
}

// unaries are the operators before an operand.
var unaries = map[string]codes{
	"-": {opFNegate, opSNegate, 0, 0}, "~": {0, opNot, opNot, 0}, "!": {boolean: opLogicalNot},
}

// called are the operators that the notation writes as calls.
var called = map[string]string{
	"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^",
}

// function is a function of the set GLSL.std.450 on some number of operands of one type.
type function struct {
	codes
	operands int
}

var functions = map[string]function{
	"round": {codes{float: 2}, 1}, "trunc": {codes{float: 3}, 1}, "abs": {codes{4, 5, 0, 0}, 1}, "sign": {codes{6, 7, 0, 0}, 1},
	"floor": {codes{float: 8}, 1}, "ceil": {codes{float: 9}, 1}, "exp": {codes{float: 27}, 1}, "log": {codes{float: 28}, 1},
	"exp2": {codes{float: 29}, 1}, "log2": {codes{float: 30}, 1}, "sqrt": {codes{float: 31}, 1}, "rsqrt": {codes{float: 32}, 1},
	"min": {codes{37, 39, 38, 0}, 2}, "max": {codes{40, 42, 41, 0}, 2}, "fma": {codes{float: 50}, 3},
}

// overSubgroup are the operations that combine the values of a subgroup.
var overSubgroup = map[string]codes{
	"Add": {opGroupFAdd, opGroupIAdd, opGroupIAdd, 0}, "Mul": {opGroupFMul, opGroupIMul, opGroupIMul, 0},
	"Min": {0, opGroupSMin, opGroupUMin, 0}, "Max": {0, opGroupSMax, opGroupUMax, 0},
}
