module github.com/millrace-go/millrace

go 1.26

require github.com/cespare/xxhash/v2 v2.3.0

require github.com/rajveermalviya/go-webgpu/wgpu v0.17.1

require github.com/dave/jennifer v1.7.1
