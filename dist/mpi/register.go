package mpi

import (
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/internal/launcher"
)

func init() {
	dist.Register("mpi", dist.Opener{Open: open, Launched: func() (string, int) {
		l := launcher.Find()
		return l.By, l.Ranks
	}})
}
