package gputest

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Target is a driver under test, registered under its name.
type Target struct {
	Name    string
	Dialect *shader.Dialect
	Open    func(adapter string) (gpurun.Device, error)
	Options string // options of the engine's devices, as in millrace.Open

	Subgroups runtime.SubgroupMode // of all devices
	Narrow    runtime.NarrowMode   // of all devices

	// Shaders for the tests of the Device itself; they belong to no kernel.
	Double string            // binding 0: words; doubles p[0].x of them and adds p[0].y
	Slow   string            // the same binding: p[0].x rounds of work for each of 65,536
	Bad    map[string]string // invalid texts, by their error
}

// device is the option string with which millrace.Open opens a device of the target.
func (x Target) device(options ...string) string {
	if x.Options != "" {
		options = append(options, x.Options)
	}
	if len(options) == 0 {
		return x.Name
	}
	return x.Name + ":" + strings.Join(options, ",")
}

// under is the current target: a test binary has one.
var under Target

type suite struct {
	name string
	run  func(*testing.T)
}

// suites test kernels and whole programs.
var suites = []suite{
	{"Copy", testCopy},
	{"Scalars", testScalars},
	{"BeyondOneBinding", testBeyondOneBinding},
	{"SizesCompileOnce", testSizesCompileOnce},
	{"Transfers", testTransfers},
	{"Narrow", testNarrow},
	{"NarrowNeighbours", testNarrowNeighbours},
	{"NarrowSorts", testNarrowSorts},
	{"Concurrent", testConcurrent},
	{"Ops", testOps},
	{"Division", testDivision},
	{"GuardedLoads", testGuardedLoads},
	{"IndexedLoads", testIndexedLoads},
	{"IndexedRowsMoveByVectors", testIndexedRowsMoveByVectors},
	{"IndexFaults", testIndexFaults},
	{"FaultKeepsOperands", testFaultKeepsOperands},
	{"RandomLayouts", testRandomLayouts},
	{"RandomSteps", testRandomSteps},
	{"RandomWindows", testRandomWindows},
	{"Turned", testTurned},
	{"TurnedRandom", testTurnedRandom},
	{"TurnedGuarded", testTurnedGuarded},
	{"TurnedFaults", testTurnedFaults},
	{"Reduce", testReduce},
	{"ReduceColumns", testReduceColumns},
	{"ReduceNaN", testReduceNaN},
	{"ReduceEmpty", testReduceEmpty},
	{"ReduceRandom", testReduceRandom},
	{"PositionNames", testPositionNames},
	{"RowKernels", testRowKernels},
	{"RowKernelsShared", testRowKernelsShared},
	{"RowKernelsCut", testRowKernelsCut},
	{"RowOps", testRowOps},
	{"SortDescending", testSortDescending},
	{"RowMix", testRowMix},
	{"RowsTakenTogether", testRowsTakenTogether},
	{"RowsBeside", testRowsBeside},
	{"RowsAbreast", testRowsAbreast},
	{"RowsAbreastLayouts", testRowsAbreastLayouts},
	{"RowsRagged", testRowsRagged},
	{"RowWork", testRowWork},
	{"Subgroups", testSubgroups},
	{"SoftmaxOnline", testSoftmaxOnline},
	{"Scatter", testScatter},
	{"ScatterFault", testScatterFault},
	{"ScatterReach", testScatterReach},
	{"Dot", testDot},
	{"DotIntegers", testDotIntegers},
	{"DotFused", testDotFused},
	{"DotDims", testDotDims},
	{"DotApart", testDotApart},
	{"Units", testUnits},
	{"UnitsSpecial", testUnitsSpecial},
	{"UnitsWide", testUnitsWide},
	{"UnitsAhead", testUnitsAhead},
	{"UnitsOff", testUnitsOff},
	{"Precision", testPrecision},
	{"PrecisionSpecial", testPrecisionSpecial},
	{"PrecisionParts", testPrecisionParts},
	{"EnginePrecision", testEnginePrecision},
	{"Choices", testChoices},
	{"Prepared", testPrepared},
	{"ManyRuns", testManyRuns},
	{"Closed", testClosed},
	{"Lost", testLost},
	{"LaunchError", testLaunchError},
	{"Unsupported", testUnsupported},
	{"AdapterChoice", testAdapterChoice},
	{"EngineFuses", testEngineFuses},
	{"EngineLimits", testEngineLimits},
	{"EngineUnsupported", testEngineUnsupported},
	{"SquareOfRoot", testSquareOfRoot},
	{"Self", testSelf},
	{"EngineFlat", testEngineFlat},
	{"EngineGatherFuses", testEngineGatherFuses},
	{"EngineIndexOutOfRange", testEngineIndexOutOfRange},
	{"EngineScatters", testEngineScatters},
	{"EngineScatterInPlace", testEngineScatterInPlace},
	{"EngineScatterOutOfRange", testEngineScatterOutOfRange},
	{"EnginePieces", testEnginePieces},
	{"EngineChains", testEngineChains},
	{"EngineRecordingAxes", testEngineRecordingAxes},
	{"EngineEager", testEngineEager},
	{"EngineEagerFaults", testEngineEagerFaults},
	{"EngineEagerSteady", testEngineEagerSteady},
	{"EngineRecorded", testEngineRecorded},
	{"EngineRecordedFaults", testEngineRecordedFaults},
	{"EngineGrads", testEngineGrads},
	{"EngineOptim", testEngineOptim},
	{"EngineBoundSteps", testEngineBoundSteps},
	{"EngineRecordedSteps", testEngineRecordedSteps},
	{"EngineBundle", testEngineBundle},
	{"EngineWarm", testEngineWarm},
	{"EnginePrograms", testEnginePrograms},
	{"EngineProgramsForced", testEngineProgramsForced},
	{"EnginePadsBehindReshape", testEnginePadsBehindReshape},
	{"EngineFloatPrograms", testEngineFloatPrograms},
	{"EngineNarrow", testEngineNarrow},
	{"EngineNarrowPrograms", testEngineNarrowPrograms},
}

// Run runs all suites, each as a subtest.
func Run(t *testing.T, x Target) {
	under = x
	for _, s := range suites {
		t.Run(s.name, s.run)
	}
}

// Some runs the suites of these names.
func Some(t *testing.T, x Target, names ...string) {
	under = x
	for _, s := range suites {
		if slices.Contains(names, s.name) {
			t.Run(s.name, s.run)
		}
	}
}

// Bench runs the benchmarks.
func Bench(b *testing.B, x Target) {
	under = x
	b.Run("OverCopy", benchOverCopy)
	b.Run("Layouts", benchLayouts)
	b.Run("Rows", benchRows)
	b.Run("ShortRows", benchShortRows)
	b.Run("Run", benchRun)
	b.Run("Eager", benchEager)
	b.Run("Narrow", benchNarrow)
}
