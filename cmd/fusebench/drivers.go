package main

// The devices fusebench can run on, besides the CPU.
import (
	_ "github.com/millrace-go/millrace/runtime/vulkan"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)
