package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace-go/millrace/internal/hostinfo"
)

// A Machine says where figures were measured.
type Machine = hostinfo.Machine

// thisMachine describes the machine that fusebench runs on, and the command line.
func thisMachine() Machine {
	m := hostinfo.This()
	m.Command = strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	return m
}
