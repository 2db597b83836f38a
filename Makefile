# Two commands for everybody:
#   make bench   the three GELUs, fused and unfused, on every device of this machine
#   make test    vet, the house rules and every test; in CI everything that make check runs
# and make bench-all, which times everything fusebench has programs for, and
# make bench-gomlx and make bench-programs, which compare with GoMLX's own backend.
# As root on Debian or Ubuntu they install what is missing; APT=0 forbids it.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help gpu bench bench-all bench-gomlx bench-programs figures paired peers gomlx-core onnx shipped subgroups test check accuracy consumer-check fuzz hammer hammer-server generate lint

help:
	@echo 'make bench            fusebench gelu on every device here; ARGS="-shape 8,64,256" and the like'
	@echo 'make bench-all        every suite of fusebench, one after another; ARGS="-device cpu -budget 30s" and the like'
	@echo 'make figures          take the figures of docs/benchmarks that are in files anew on this machine (twenty minutes)'
	@echo 'make paired OLD=HEAD~1 every suite by the program of another commit beside this one, in turns (twenty minutes); ARGS="gelu train" and the like'
	@echo 'make bench-gomlx      the benchmarks of GoMLX, on Millrace and on its own Go backend; ARGS="-run Softmax" and the like'
	@echo 'make bench-programs   programs as people run with GoMLX (LSTM, VAE, GNN, MoE, UNet, search) on its Go backend, without and with SIMD, and on Millrace'
	@echo 'make gpu              builds in dist/gpu what is measured on a graphics card; ARGS="run OUT" measures there, in eight minutes'
	@echo 'make peers            numpy, numexpr, torch, jax, onnxruntime and Burn beside Millrace: installs what it can; ARGS="-rounds 10" and the like'
	@echo 'make shipped          a program with its plans in it: record, generate, build, run'
	@echo 'make test             vet, the house rules and every test, as this machine builds them'
	@echo 'make check            everything CI checks: the same in other builds, -race, fuzzing and more'
	@echo ''
	@echo 'Parts of make check, and what is too long for it:'
	@echo 'make lint             gofmt, go vet and the house rules'
	@echo 'make fuzz             every fuzz target, FUZZTIME (10s) each'
	@echo 'make hammer           concurrency tests under the race detector, HAMMER (30s) each'
	@echo 'make hammer-server    the one of them that is a server program, for SERVER (10m)'
	@echo 'make consumer-check   go get, build, tidy, vendor and install from an empty app'
	@echo 'make gomlx-core      GoMLX'"'"'s own tests on Millrace and on its Go backend; ARGS="-run core/graph" and the like'
	@echo 'make onnx             ONNX'"'"'s own tests of operators on package onnx, made by its Python package; ARGS="-update" and the like'
	@echo 'make subgroups        OpenGL'"'"'s and Vulkan'"'"'s suites on newer drivers, in a chroot that it makes: as root; ARGS="-test.run Rows" and the like'
	@echo 'make generate         write the generated files anew'
	@echo 'make test-long        every combination of dtypes and layouts on compiled kernels (half an hour)'
	@echo 'make accuracy         every float32 input of every function against float64 (an hour or so)'

bench:
	@scripts/bench.sh gelu $(ARGS)

bench-all:
	@scripts/bench.sh all $(ARGS)

figures:
	@scripts/figures.sh $(ARGS)

paired:
	@scripts/paired.sh $(OLD) $(ARGS)

gomlx-core:
	@cd gomlxbackend && go run ./internal/gomlxcore $(ARGS)

bench-gomlx:
	@cd gomlxbackend && go run ./internal/bench $(ARGS)

bench-programs:
	@cd gomlxbackend/internal/programs && GOTOOLCHAIN=go1.27.4 GOEXPERIMENT=simd go run . $(ARGS)

gpu:
	@scripts/gpu.sh $(or $(ARGS),build)

peers:
	@scripts/peers.sh $(ARGS)

shipped:
	@scripts/shipped.sh

onnx:
	@scripts/onnx.sh $(ARGS)

subgroups:
	@scripts/subgroups.sh $(ARGS)

test:
	@scripts/test.sh

test-long:
	MILLRACE_LONG=1 go test -timeout 2h ./runtime/cpu ./internal/testing/apitest ./fusion ./stream ./ir ./autodiff

check lint fuzz hammer hammer-server consumer-check accuracy:
	@scripts/test.sh $@

generate:
	go generate ./...
