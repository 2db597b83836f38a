package cpu

import (
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// threadMemory is the memory that a thread keeps from launch to launch.
type threadMemory struct {
	memory.Arena
	args    args
	evals   [2]evaluation
	room    interp.Room
	ops     []operand // of a tile
	folding foldWalk
	merged  mergedCache
}
