package stream

// Explain tells how v came to be: the segment that made it, the kernels of its
// plan with their tier and source, and for each pair of kernels that might
// have been one, why it is not. It runs what v needs first. The answer is the
// same whether the plan was found or made.
func Explain(v *Value) string {
	st, err := computed(v, nil, "explain")
	if err != nil {
		return err.Error() + "\n"
	}
	defer st.Release()
	if st.By == nil {
		return "not computed: copied from the host\n"
	}
	return st.By.Explain(st.ID)
}
