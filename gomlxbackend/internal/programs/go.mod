module github.com/millrace-go/millrace/gomlxbackend/internal/programs

go 1.27.4

require (
	github.com/gomlx/compute v0.1.14
	github.com/gomlx/gomlx v0.28.16
	github.com/millrace-go/millrace/gomlxbackend v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/millrace-go/millrace v0.1.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/exp v0.0.0-20260908205506-85c1c2202aba // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)
