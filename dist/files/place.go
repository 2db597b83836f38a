package files

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/dist/internal/launcher"
)

// vars are variables of a launcher, from which a part follows.
type vars struct {
	name        string
	part, parts string
	first, step string // of the numbers of the parts, where they do not count from 0
	last        string
}

// arrays are launchers of jobs of one process each, or of one set of ranks.
var arrays = []vars{
	{
		name: "Slurm's array", part: "SLURM_ARRAY_TASK_ID", parts: "SLURM_ARRAY_TASK_COUNT",
		first: "SLURM_ARRAY_TASK_MIN", step: "SLURM_ARRAY_TASK_STEP", last: "SLURM_ARRAY_TASK_MAX",
	},
	{name: "Kubernetes' Indexed Job", part: "JOB_COMPLETION_INDEX", parts: "JOB_COMPLETIONS"},
}

// Place returns which part of how many this process is, from the variables of Open MPI, MVAPICH,
// MPICH (and Intel MPI), Slurm's srun and arrays, and Kubernetes' Indexed Jobs; 0 of 1 without any.
// The tasks of an array may be steps of several ranks: each is then a part.
//
// Kubernetes sets only the index. The job's template must set JOB_COMPLETIONS to the number of its
// completions. A variable that is missing or is no number in its range is an error that names it,
// as is a Slurm array whose indices have gaps.
func Place() (part, parts int, err error) { return place(os.LookupEnv) }

func place(lookup func(string) (string, bool)) (part, parts int, err error) {
	part, parts = 0, 1
	for _, table := range [][]vars{arrays, ranks(lookup)} {
		for _, l := range table {
			if _, set := lookup(l.part); !set {
				continue
			}
			p, n, err := l.place(lookup)
			if err != nil {
				return 0, 0, err
			}
			part, parts = part*n+p, parts*n
			break
		}
	}
	return part, parts, nil
}

// ranks are launchers of processes, without one that started the job's script only.
func ranks(lookup func(string) (string, bool)) (list []vars) {
	for _, l := range launcher.Ranked() {
		if _, set := lookup(l.Size); set || !l.Script {
			list = append(list, vars{name: l.By, part: l.Rank, parts: l.Size})
		}
	}
	return list
}

func (l vars) place(lookup func(string) (string, bool)) (part, parts int, err error) {
	number := func(name string, least int) int {
		if err != nil {
			return 0
		}
		text, set := lookup(name)
		n, bad := strconv.Atoi(strings.TrimSpace(text))
		switch {
		case !set:
			err = fmt.Errorf("files: %s has set %s, but %s is missing", l.name, l.part, name)
		case bad != nil || n < least:
			err = fmt.Errorf("files: %s is %q, which is not a number from %d on", name, text, least)
		}
		return n
	}
	part, parts = number(l.part, 0), number(l.parts, 1)
	if l.first != "" {
		first, step, last := number(l.first, 0), number(l.step, 1), number(l.last, 0)
		if err == nil && (part < first || part > last || (part-first)%step != 0 || (last-first)/step+1 != parts) {
			err = fmt.Errorf("files: the indices of %s must have one distance: %d is one of %d from %d to %d by %d", l.name, part, parts, first, last, step)
		}
		if err == nil {
			part = (part - first) / step
		}
	}
	if err == nil && part >= parts {
		err = fmt.Errorf("files: %s is %d, but %s is %d", l.part, part, l.parts, parts)
	}
	if err != nil {
		return 0, 0, err
	}
	return part, parts, nil
}
