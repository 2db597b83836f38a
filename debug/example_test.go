package debug_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/debug"
)

// A program with its own mux registers the page there.
func ExamplePage() {
	dev, err := millrace.Open("cpu:report")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	if err := millrace.OnesOn(dev, millrace.Float32, 100).Exp().Sum().Eval(); err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ops/millrace", debug.Page)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/ops/millrace", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"), strings.HasPrefix(w.Body.String(), "<!doctype html>"))
	// Output: 200 text/html; charset=utf-8 true
}

// Counters go to any metrics: here the plans that were made, and memory.
func ExampleCounters() {
	dev, err := millrace.Open("cpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	x := millrace.OnesOn(dev, millrace.Float32, 1000)
	if err := x.Eval(); err != nil {
		fmt.Println(err)
		return
	}
	all := debug.Counters()
	newest := all[len(all)-1]
	fmt.Println(newest.Name, newest.Stats.Segments, "segment run,", newest.Stats.LiveBytes, "bytes live")
	// Output: cpu 1 segment run, 4000 bytes live
}
