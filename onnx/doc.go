// Package onnx runs models in the ONNX format on Millrace, and trains them further.
//
//	m, err := onnx.Open("model.onnx")
//	out, err := m.Run(ctx, map[string]*millrace.Tensor{"x": x})
//	y := out["y"]
//
// A model is interpreted: each node calls the ops that a program would call, so that they are
// recorded, fused and run like those of a program. Inputs may have any size where the model does
// not fix it, and a new size needs no new plan. Arithmetic on shapes runs on the host. If, Loop and
// Scan are control flow of Go: a condition that was computed is read.
//
// Initializers of floats with at least one dimension are parameters ([Model.State]), so a Model is a
// module of package nn: [Model.Forward] takes part in a forward pass, and optimisers change the
// weights.
//
// Opsets 7 to 24 of the default domain are known, and functions that a model defines. Operators that
// are not known, and everything else that is wrong with a model, are in the error of Open. The page
// docs/guides/onnx.md lists the operators.
//
// Files may come from untrusted sources. What they say about sizes is checked against their bytes
// before memory is used. Data outside of a model's folder are refused. A loop without an end stops
// with the context of [Model.Run].
//
// Input: a file in ONNX's format. Output: calls of ops of package millrace. Of the source, read
// open.go first, then run.go; the operators are rows of tables in the files ops_*.go.
package onnx
