module github.com/millrace-go/millrace/onnx

go 1.26

require (
	github.com/millrace-go/millrace v0.1.0
	google.golang.org/protobuf v1.36.12
)
