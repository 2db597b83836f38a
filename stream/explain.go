package stream

// Explain describes how v was computed: its segment, the kernels of the segment's plan with their
// tier and source, and for each pair of kernels the reason why they were not fused. It first runs
// the ops that v needs. The answer does not depend on whether the plan was found or made.
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
