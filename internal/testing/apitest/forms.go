package apitest

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

type tensor = millrace.Tensor

// forms are the ways to call the ops of ir.
var forms = optable.Forms()
