package millrace

import "github.com/millrace-go/millrace/ir"

// The ops of this file are activation functions of neural networks: compositions of other ops,
// recorded as one. Shape and dtype of the result are t's. Floats only, else ErrDType, unless an
// op says otherwise.

// Sigmoid is 1/(1+exp(-t)).
func (t *Tensor) Sigmoid() *Tensor { return unary(ir.Sigmoid, t) }

// Relu is t where t is above 0, else +0, for numbers. NaN gives NaN.
func (t *Tensor) Relu() *Tensor { return unary(ir.Relu, t) }

// Gelu is t·Φ(t) = t·(erf(t/√2)+1)/2, with Φ the distribution function of the standard normal
// distribution.
func (t *Tensor) Gelu() *Tensor { return unary(ir.Gelu, t) }

// GeluTanh is Gelu's approximation t·(1+tanh(√(2/π)·(t+0.044715·t³)))/2.
func (t *Tensor) GeluTanh() *Tensor { return unary(ir.GeluTanh, t) }

// Silu is t·sigmoid(t), also called swish.
func (t *Tensor) Silu() *Tensor { return unary(ir.Silu, t) }

// Softplus is log(1+exp(t)), without overflow for large t.
func (t *Tensor) Softplus() *Tensor { return unary(ir.Softplus, t) }
