package optable

import (
	"github.com/millrace-go/millrace"
)

var reads = []Op{
	{Name: "Values", Func: millrace.Values[float32]},
	{Name: "ValuesContext", Func: millrace.ValuesContext[float32]},
	{Name: "ReadInto", Func: millrace.ReadInto[float32]},
	{Name: "ReadIntoContext", Func: millrace.ReadIntoContext[float32]},
	{Name: "Item", Func: millrace.Item[float32]},
	{Name: "ItemContext", Func: millrace.ItemContext[float32]},
	{Name: "Elements", Func: millrace.Elements[float32]},
	{Name: "Tensor.Along"},
	{Name: "Equal", Func: millrace.Equal},
	{Name: "AllClose", Func: millrace.AllClose},
	{Name: "Tensor.WriteTo"},
	{Name: "Tensor.String"},
	{Name: "Tensor.Format"},
	{Name: "Tensor.MarshalJSON"},
	{Name: "Tensor.UnmarshalJSON"},
}

var runs = []Op{
	{Name: "Tensor.Eval"},
	{Name: "Tensor.EvalContext"},
	{Name: "Tensor.Err"},
	{Name: "Tensor.Explain"},
}

var handles = []Op{
	{Name: "Tensor.Shape"},
	{Name: "Tensor.Dim"},
	{Name: "Tensor.Rank"},
	{Name: "Tensor.Len"},
	{Name: "Tensor.DType"},
	{Name: "Tensor.Stream"},
	{Name: "Tensor.Set"},
	{Name: "Tensor.Release"},
}
