package files

import (
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		env         string
		part, parts int
		err         string
	}{
		{"", 0, 1, ""},
		{"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", 2, 4, ""},
		{"PMI_RANK=0 PMI_SIZE=1", 0, 1, ""},
		{"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", 1, 2, ""},
		{"SLURM_PROCID=0 SLURM_NTASKS=4", 0, 1, ""}, // a batch script
		{"SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4", 3, 4, ""},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", 1, 2, ""}, // mpirun in a step
		{"SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=4", 2, 4, ""},
		{"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=1 SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=2 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3", 5, 6, ""},
		{"JOB_COMPLETION_INDEX=6 JOB_COMPLETIONS=7", 6, 7, ""},
		{"JOB_COMPLETION_INDEX=6", 0, 0, "JOB_COMPLETIONS is missing"},
		{"PMI_RANK=1", 0, 0, "PMI_SIZE is missing"},
		{"JOB_COMPLETION_INDEX=7 JOB_COMPLETIONS=7", 0, 0, "JOB_COMPLETION_INDEX is 7, but JOB_COMPLETIONS is 7"},
		{"OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=2", 0, 0, `"x"`},
		{"OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=2", 0, 0, `"-1"`},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=0", 0, 0, "from 1 on"},
		{"SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=3", 0, 0, "one distance"}, // 1,3,7
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		part, parts, err := place(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if part != c.part || parts != c.parts || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d of %d, %v", c.env, part, parts, err)
		}
	}
}
