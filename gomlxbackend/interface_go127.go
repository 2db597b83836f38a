//go:build go1.27 && !compute_go126

package gomlxbackend

import "github.com/gomlx/compute"

// What only versions of compute from 0.1.11 on have, which ask for Go 1.27. A
// module that keeps an older one builds with the tag compute_go126 there, since
// no constraint can name a module's version. With the files *_go127.go this is
// all that knows of the difference.

// later are the ops that only these versions know.
var later = []compute.OpType{
	compute.OpTypeDynamicBroadcastInDim, compute.OpTypeDynamicIota, compute.OpTypeDynamicPad,
	compute.OpTypeCumSum, compute.OpTypeFusedActivation, compute.OpTypeFusedActivationVJP, compute.OpTypeFusedDenseVJP,
}

// slicesClip says that a slice may begin and end where there is nothing.
const slicesClip = false

// activationOf is the activation that a dense layer ends with.
func activationOf(c compute.DenseConfig) compute.ActivationType { return c.Activation.Type }
