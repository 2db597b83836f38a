// Package models has the networks that the example programs train and fusebench train
// times: small ones, each as one would write it, to be read and copied. Beside them is what
// several of the programs do alike (run.go).
package models
