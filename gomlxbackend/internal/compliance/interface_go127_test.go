//go:build go1.27 && !compute_go126

package compliance

import "github.com/gomlx/compute"

// suiteCPU is what the suite comes to on the CPU: at least so many passes, at
// most so many skips.
var suiteCPU = [2]int{404, 1}

// windowsOfBool says that the Go backend has them.
const windowsOfBool = true

// activationTypes are those that a dense layer can end with.
var activationTypes = []compute.ActivationType{
	compute.ActivationNone, compute.ActivationRelu, compute.ActivationSigmoid, compute.ActivationHardSigmoid, compute.ActivationLeakyRelu,
	compute.ActivationSelu, compute.ActivationSilu, compute.ActivationHardSwish, compute.ActivationTanh, compute.ActivationGelu,
	compute.ActivationGeluApproximate,
}

func denseConfig(a compute.ActivationType, l compute.DenseLayout) compute.DenseConfig {
	return compute.DenseConfig{Activation: compute.ActivationConfig{Type: a}, WeightLayout: l}
}

func gelu(f compute.Function, x compute.Value, exact bool) (compute.Value, error) {
	a := compute.ActivationGeluApproximate
	if exact {
		a = compute.ActivationGelu
	}
	return f.FusedActivation(x, compute.ActivationConfig{Type: a})
}
