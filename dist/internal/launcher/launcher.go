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
	rank   string   // the variable with the process's rank
	with   []string // variables that must be set too
}{
	{"Open MPI's mpirun", OpenMPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", nil},
	{"MVAPICH's mpirun", MPICH, "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", nil},
	{"MPICH's mpiexec", MPICH, "PMI_SIZE", "PMI_RANK", nil},
	{"Slurm's srun", Any, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", []string{"SLURM_STEP_ID", "SLURM_PROCID"}},
	{"a launcher with PMIx", Any, "", "PMIX_RANK", []string{"PMIX_RANK"}},
}

// Variables are those that tell a process's rank and the number of ranks. Script says that the job's
// script, which is not a rank, has the first one too.
type Variables struct {
	By, Rank, Size string
	Script         bool
}

// Ranked returns the variables of the launchers that tell both, the nearest to the process first.
func Ranked() (list []Variables) {
	for _, r := range rows {
		if r.size != "" {
			list = append(list, Variables{r.by, r.rank, r.size, len(r.with) > 0})
		}
	}
	return list
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
