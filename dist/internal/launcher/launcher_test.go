package launcher

import "testing"

// TestFind: the launcher nearest to the process counts, and numbers that are none do not.
func TestFind(t *testing.T) {
	slurm := map[string]string{"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range slurm {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for _, c := range []struct {
		env  map[string]string
		want Launch
	}{
		{nil, Launch{}},
		{map[string]string{"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, Launch{}}, // a batch script, outside of a step
		{slurm, Launch{"Slurm's srun (SLURM_STEP_NUM_TASKS=2)", Any, 2}},
		{with("PMIX_RANK", "1"), Launch{"Slurm's srun (SLURM_STEP_NUM_TASKS=2)", Any, 2}},
		{with("PMI_SIZE", "4"), Launch{"MPICH's mpiexec (PMI_SIZE=4)", MPICH, 4}},
		{with("OMPI_COMM_WORLD_SIZE", "3", "PMIX_RANK", "0"), Launch{"Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=3)", OpenMPI, 3}},
		{map[string]string{"PMIX_RANK": "0"}, Launch{"a launcher with PMIx (PMIX_RANK is set)", Any, 0}},
		{map[string]string{"MV2_COMM_WORLD_SIZE": "5"}, Launch{"MVAPICH's mpirun (MV2_COMM_WORLD_SIZE=5)", MPICH, 5}},
		{map[string]string{"OMPI_COMM_WORLD_SIZE": "many"}, Launch{}},
		{map[string]string{"PMI_SIZE": "0"}, Launch{}},
	} {
		got := find(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if got != c.want {
			t.Errorf("%v: %v, not %v", c.env, got, c.want)
		}
	}
}
