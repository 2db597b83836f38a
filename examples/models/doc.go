// Package models has the networks that the example programs train and fusebench train
// times: small ones, each as one would write it, to be read and copied.
package models
