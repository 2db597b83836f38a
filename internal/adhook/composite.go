package adhook

// Composite is an op of package millrace that consists of other ops, but has a rule of its own in
// package autodiff: see the table in autodiff/rules.go. Other composites are followed op by op.
type Composite interface{ composite() }

// rule is the part that all composites share.
type rule struct{}

func (rule) composite() {}

// Contraction is every matrix product.
type Contraction struct {
	rule
	T, U, Out []int // labels of the operands' dims and of the result's
	Sum       []int // labels that are summed over
}

// Conv and ConvTranspose are convolutions. O is millrace.ConvOptions.
type (
	Conv[O any] struct {
		rule
		Options O
	}
	ConvTranspose[O any] struct {
		rule
		Options O
	}
)

// Windows makes windows along one axis. W is millrace.Window.
type Windows[W any] struct {
	rule
	Axis   int
	Window W
}

// ReduceWindow and AvgPool combine the elements of windows along the last axes.
type (
	ReduceWindow[W any] struct {
		rule
		How  uint8 // millrace.Reduction
		List []W
	}
	AvgPool[W any] struct {
		rule
		List []W
	}
)

// Softmax and its relatives normalise along an axis.
type (
	Softmax struct {
		rule
		Axis int
	}
	LogSoftmax struct {
		rule
		Axis int
	}
	MaskedSoftmax struct {
		rule
		Axis int
	}
	MaskedLogSoftmax struct {
		rule
		Axis int
	}
)

// LogSumExp, Norm2, Var and Std are statistics along axes as the program gave them.
type (
	LogSumExp struct {
		rule
		Axes []int
	}
	Norm2 struct {
		rule
		Axes []int
	}
	Var struct {
		rule
		Axes []int
		Ddof int
	}
	Std struct {
		rule
		Axes []int
		Ddof int
	}
)

// LayerNorm and RMSNorm normalise along axes as the program gave them.
type (
	LayerNorm struct {
		rule
		Axes []int
		Eps  float64
	}
	RMSNorm struct {
		rule
		Axes []int
		Eps  float64
	}
)

// Between is the mean of two tensors in which the second one has a share.
type Between struct {
	rule
	Share float64
}

// These composites have no arguments that their rules need.
type (
	CrossEntropy struct{ rule }
	Log10        struct{ rule }
	Asinh        struct{ rule }
	Acosh        struct{ rule }
	Atanh        struct{ rule }
	To           struct{ rule }
)
