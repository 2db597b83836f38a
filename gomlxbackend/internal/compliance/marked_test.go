package compliance

import "testing"

// Ops on operands whose axes are dynamic, where their sizes may be: the same
// comparisons with the Go backend on operands of fixed sizes.
func TestMarkedAgainstGo(t *testing.T) {
	marking = true
	defer func() { marking = false }()
	for name, c := range map[string]struct {
		test  func(t *testing.T)
		least int // graphs with dynamic axes
	}{
		"unary":          {TestUnaryAgainstGo, 100},
		"binary":         {TestBinaryAgainstGo, 1200},
		"fused":          {TestFusedAgainstGo, 120},
		"windows":        {TestReduceWindowAgainstGo, 200},
		"gradients":      {TestSelectAndScatterAgainstGo, 10},
		"dynamic slices": {TestDynamicSlices, 3},
		"reductions":     {TestReduceAgainstGo, 450},
		"moves":          {TestMovesAgainstGo, 400},
		"conversions":    {TestConvertAgainstGo, 120},
		"convolutions":   {TestConvGeneralAgainstGo, 60},
		"gathers":        {TestGatherAgainstGo, 70},
		"scatters":       {TestScatterByDefinition, 60},
		"sorts":          {TestSort, 150},
		"batchnorm":      {TestBatchNorm, 150},
		"bits":           {TestBitcastAgainstGo, 200},
	} {
		marks = 0
		t.Run(name, c.test)
		if t.Logf("%s: %d graphs with dynamic axes", name, marks); marks < c.least {
			t.Errorf("%s: want at least %d", name, c.least)
		}
	}
}
