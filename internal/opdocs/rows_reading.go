package main

// reading are the functions and methods that are no operations of a stream.
var reading = []group{
	{"Values", "", []row{
		plain("Values"),
		plain("ValuesContext"),
		plain("ReadInto"),
		plain("ReadIntoContext"),
		plain("Item"),
		plain("ItemContext"),
		plain("Elements"),
		plain("Tensor.Along"),
		plain("Equal"),
		plain("AllClose"),
		plain("Tensor.WriteTo"),
		plain("Tensor.String"),
		plain("Tensor.Format"),
		plain("Tensor.MarshalJSON"),
		plain("Tensor.UnmarshalJSON"),
	}},
	{"Running", "", []row{
		plain("Tensor.Eval"),
		plain("Tensor.EvalContext"),
		plain("Tensor.Err"),
		plain("Tensor.Explain"),
	}},
	{"Handles", "", []row{
		plain("Tensor.Shape"),
		plain("Tensor.Dim"),
		plain("Tensor.Rank"),
		plain("Tensor.Len"),
		plain("Tensor.DType"),
		plain("Tensor.Stream"),
		plain("Tensor.Set"),
		plain("Tensor.Release"),
	}},
}
