// Package plans is where a test puts plans and kernels, in a build of its own.
package plans
