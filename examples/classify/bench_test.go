package main

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

var (
	benchURL = flag.String("url", "", "server that BenchmarkClassify asks; one of its own where there is none")
	clients  = flag.Int("clients", 1, "clients of BenchmarkClassify, which ask again when they are answered")
)

// BenchmarkClassify asks for the shape of a picture of 64 by 64 pixels, and reports the median
// and the 99th percentile of the times to an answer, and answers a second.
//
//	go test ./examples/classify -run '^$' -bench Classify -benchtime 2000x -clients 8
func BenchmarkClassify(b *testing.B) {
	url := *benchURL
	if url == "" {
		url = started(b)
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = *clients
	body := encoded(b, draw(rand.New(rand.NewPCG(3, 3)), 2, 64))
	for range 20 {
		if _, err := classified(url, body); err != nil {
			b.Fatal(err)
		}
	}
	took := make([]float64, b.N)
	var next atomic.Int64
	failed := make(chan error, *clients)
	b.ResetTimer()
	for range *clients {
		go func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(b.N) {
					failed <- nil
					return
				}
				at := time.Now()
				if _, err := classified(url, body); err != nil {
					failed <- err
					return
				}
				took[i] = time.Since(at).Seconds() * 1e3
			}
		}()
	}
	for range *clients {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[b.N/2], "ms-median")
	b.ReportMetric(took[b.N*99/100], "ms-p99")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
