package debug

import (
	"context"
	"expvar"
	"net/http"
	"runtime/pprof"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/proflabel"
	"github.com/millrace-go/millrace/stream"
)

func init() {
	http.HandleFunc("GET /debug/millrace", Page)
	expvar.Publish("millrace", expvar.Func(func() any { return Counters() }))
	proflabel.Use(proflabel.Marks{
		Make: func(kernel, key string) any {
			return pprof.WithLabels(context.Background(), pprof.Labels("kernel", kernel, "kernel_key", key))
		},
		Set: func(mark any) {
			ctx, ok := mark.(context.Context)
			if !ok {
				ctx = context.Background()
			}
			pprof.SetGoroutineLabels(ctx)
		},
	})
}

// Page serves the report of all open devices, for programs that do not use
// http.DefaultServeMux.
func Page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if err := millrace.Report(w); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Device is an open device with its counters.
type Device struct {
	Name  string
	Stats millrace.Stats
}

// Counters are those of all open devices, in the order of their opening.
func Counters() []Device {
	list := []Device{}
	for _, d := range stream.Devices() {
		list = append(list, Device{Name: d.Name(), Stats: d.Stats()})
	}
	return list
}
