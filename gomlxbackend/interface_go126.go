//go:build !go1.27 || compute_go126

package gomlxbackend

import "github.com/gomlx/compute"

// What interface_go127.go has, for versions of compute before 0.1.11.

// later are the ops that only newer versions know.
var later []compute.OpType

// slicesClip says that a slice may begin and end where there is nothing.
const slicesClip = true

// activationOf is the activation that a dense layer ends with.
func activationOf(c compute.DenseConfig) compute.ActivationType { return c.Activation }
