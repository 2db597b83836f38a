// Package plans is the place where a test puts plans and kernels, in a separate build.
package plans
