// Server answers HTTP requests with what a small network makes of their numbers. Each
// request has a stream of its own, so that none waits for another, and shares the weights.
//
//	go run ./examples/server
//	curl -d '[[0.5, -1, 2, 0]]' localhost:8080/predict
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/millrace-go/millrace"
)

func main() {
	address := flag.String("http", "localhost:8080", "address to listen at")
	flag.Parse()
	s, err := newServer(4, 64, 3)
	if err != nil {
		log.Fatal(err)
	}
	h := &http.Server{Addr: *address, Handler: s, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	log.Printf("listening at http://%s/predict", *address)
	log.Fatal(h.ListenAndServe())
}

// server has the weights, on the default stream: streams of requests read them.
type server struct {
	dev           *millrace.Device
	in            int
	first, second *millrace.Tensor
	mux           http.ServeMux
}

func newServer(in, hidden, out int) (*server, error) {
	dev, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	s := &server{
		dev: dev, in: in,
		first:  millrace.Normal(millrace.Float32, 1, in, hidden).MulScalar(0.5),
		second: millrace.Normal(millrace.Float32, 2, hidden, out).MulScalar(0.2),
	}
	s.mux.HandleFunc("POST /predict", s.predict)
	return s, errors.Join(s.first.Eval(), s.second.Eval())
}

// ServeHTTP makes it a handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// most is the bytes of a request.
const most = 1 << 20

// predict answers a list of rows with a list of shares, which add up to 1 in each.
func (s *server) predict(w http.ResponseWriter, r *http.Request) {
	var rows [][]float32
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&rows); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var flat []float32
	for i, row := range rows {
		if len(row) != s.in {
			http.Error(w, fmt.Sprintf("row %d has %d numbers, not %d", i, len(row), s.in), http.StatusBadRequest)
			return
		}
		flat = append(flat, row...)
	}
	stream := s.dev.NewStream()
	defer stream.Close()
	x := millrace.FromSliceOn(stream, flat, len(rows), s.in)
	y := x.MatMul(s.first).Gelu().MatMul(s.second).Softmax(1)
	v, err := millrace.ValuesContext[float32](r.Context(), y)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := y.Dim(1)
	answer := make([][]float32, len(rows))
	for i := range answer {
		answer[i] = v[i*out : (i+1)*out]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}
