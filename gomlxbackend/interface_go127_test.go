//go:build go1.27 && !compute_go126

package gomlxbackend

import "github.com/gomlx/compute"

func denseEnding(a compute.ActivationType) compute.DenseConfig {
	return compute.DenseConfig{Activation: compute.ActivationConfig{Type: a}}
}

func geluOf(f compute.Function, x compute.Value) compute.Value {
	return must(f.FusedActivation(x, compute.ActivationConfig{Type: compute.ActivationGelu}))
}
