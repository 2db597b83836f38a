module github.com/millrace-go/millrace/onnx

go 1.26

require (
	github.com/millrace-go/millrace v0.1.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	gonum.org/v1/gonum v0.16.0 // indirect
)
