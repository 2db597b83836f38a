//go:build !go1.27 || compute_go126

package compliance

import "github.com/gomlx/compute"

// suiteCPU is what the suite comes to on the CPU: at least so many passes, at
// most so many skips.
var suiteCPU = [2]int{344, 1}

// windowsOfBool says that the Go backend has them.
const windowsOfBool = false

// activationTypes are those that there are.
var activationTypes = []compute.ActivationType{
	compute.ActivationNone, compute.ActivationGelu, compute.ActivationRelu, compute.ActivationSilu, compute.ActivationHardSwish, compute.ActivationTanh,
}

func denseConfig(a compute.ActivationType, l compute.DenseLayout) compute.DenseConfig {
	return compute.DenseConfig{Activation: a, WeightLayout: l}
}

func gelu(f compute.Function, x compute.Value, exact bool) (compute.Value, error) {
	return f.FusedGelu(x, exact)
}
