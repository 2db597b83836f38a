package launcher

import (
	"fmt"
	"os"
	"strconv"
)

// Family is a set of MPI libraries that share a launcher.
type Family int

const (
	Any     Family = iota // the launcher starts several families
	OpenMPI               // Open MPI
	MPICH                 // MPICH, MVAPICH, Intel MPI
)

// Launch describes how the process was started. The zero value means that no launcher was found.
type Launch struct {
	By     string // the launcher, and the variable that told
	Family Family // of the library that the launcher talks to
	Ranks  int    // 0: the launcher does not tell
}

// rows lists the variables that launchers set. The first row whose variables are all set counts: a
// job of Slurm has Slurm's variables under each launcher.
var rows = []struct {
	by     string
	family Family
	size   string   // the variable with the number of ranks
	with   []string // variables that must be set too
}{
	{"Open MPI's mpirun", OpenMPI, "OMPI_COMM_WORLD_SIZE", nil},
	{"MVAPICH's mpirun", MPICH, "MV2_COMM_WORLD_SIZE", nil},
	{"MPICH's mpiexec", MPICH, "PMI_SIZE", nil},
	{"Slurm's srun", Any, "SLURM_STEP_NUM_TASKS", []string{"SLURM_STEP_ID", "SLURM_PROCID"}},
	{"a launcher with PMIx", Any, "", []string{"PMIX_RANK"}},
}

// Find finds the launcher of this process.
func Find() Launch { return find(os.LookupEnv) }

func find(lookup func(string) (string, bool)) Launch {
rows:
	for _, r := range rows {
		for _, name := range r.with {
			if _, set := lookup(name); !set {
				continue rows
			}
		}
		if r.size == "" {
			return Launch{By: fmt.Sprintf("%s (%s is set)", r.by, r.with[0]), Family: r.family}
		}
		text, set := lookup(r.size)
		if n, err := strconv.Atoi(text); set && err == nil && n > 0 {
			return Launch{By: fmt.Sprintf("%s (%s=%d)", r.by, r.size, n), Family: r.family, Ranks: n}
		}
	}
	return Launch{}
}
