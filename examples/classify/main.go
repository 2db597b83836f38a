// Classify says over HTTP which shape a PNG shows. It learns four shapes from pictures that it
// draws itself, a few seconds long; -weights keeps what it learned for the next start.
//
//	go run ./examples/classify -weights out/shapes.safetensors
//	curl --data-binary @picture.png localhost:8080/classify
//
// Requests that come while others are computed are computed together, as one batch.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/imagex"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/serve"
)

const (
	mostBytes  = 4 << 20 // of a request
	mostPixels = 1 << 20 // of an image: a small file can claim any number
	mostBatch  = 32      // images that are computed together
	patience   = 5 * time.Second
)

func main() {
	address := flag.String("http", "localhost:8080", "address to listen at")
	weights := flag.String("weights", "", "file to load the weights from, or to write them to where there is none")
	images := flag.Int("images", 2000, "pictures to learn from")
	epochs := flag.Int("epochs", 6, "times to go over them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	model, err := learned(ctx, *weights, *images, *epochs)
	if err != nil {
		log.Fatal(err)
	}
	c, err := newClassifier(model)
	if err != nil {
		log.Fatal(err)
	}
	if err := listen(ctx, *address, c); err != nil {
		log.Fatal(err)
	}
}

// learned is a model with weights of a file, or trained, in which case they are written there.
func learned(ctx context.Context, weights string, images, epochs int) (nn.Module, error) {
	model := newModel()
	if weights != "" {
		err := nn.Load(weights, model)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return model, err
		}
	}
	right, err := train(ctx, model, images, epochs)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%.1f %% of new pictures right\n", 100*right)
	if weights != "" {
		return model, models.Save(weights, model)
	}
	return model, nil
}

// listen answers until ctx is done, and then finishes what it has begun.
func listen(ctx context.Context, address string, c *classifier) error {
	h := &http.Server{
		Addr: address, Handler: c,
		ReadHeaderTimeout: patience, ReadTimeout: 2 * patience, WriteTimeout: 3 * patience, IdleTimeout: time.Minute,
	}
	failed := make(chan error, 1)
	go func() { failed <- h.ListenAndServe() }()
	log.Printf("listening at http://%s/classify", address)
	select {
	case err := <-failed:
		_ = c.batch.Close()
		return err
	case <-ctx.Done():
	}
	log.Print("stopping")
	ends, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
	defer cancel()
	err := h.Shutdown(ends) // waits for requests
	_ = c.batch.Close()
	return err
}

// classifier computes requests that wait at the same time together.
type classifier struct {
	mux   http.ServeMux
	batch *serve.Batcher[float32, float32]
}

func newClassifier(model nn.Module) (*classifier, error) {
	forward := func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{model.Forward(nn.Eval(), in[0]).Softmax(1)}, nil
	}
	batch, err := serve.New[float32, float32](forward, serve.Options{Rows: mostBatch}, []int{1, side, side})
	if err != nil {
		return nil, err
	}
	c := &classifier{batch: batch}
	c.mux.HandleFunc("POST /classify", c.classify)
	return c, nil
}

// ServeHTTP makes it a handler.
func (c *classifier) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// classify answers a PNG with the label of its shape and the probability of each.
func (c *classifier) classify(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		code := http.StatusBadRequest
		if _, large := err.(*http.MaxBytesError); large {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), code)
		return
	}
	pixels, err := decoded(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := c.batch.Run(ctx, pixels)
	if errors.Is(err, context.DeadlineExceeded) {
		http.Error(w, "too many requests wait", http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	probabilities := out[0]
	best, each := 0, make(map[string]float32)
	for i, p := range probabilities {
		if each[labels[i]] = p; p > probabilities[best] {
			best = i
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"label": labels[best], "probabilities": each}) // the client may have gone
}

// decoded is a PNG's brightness, of side times side pixels.
func decoded(body []byte) ([]float32, error) {
	size, err := png.DecodeConfig(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("no PNG: %w", err)
	}
	if size.Height > mostPixels/max(size.Width, 1) {
		return nil, fmt.Errorf("%d by %d pixels, at most %d in all", size.Width, size.Height, mostPixels)
	}
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("a damaged PNG: %w", err)
	}
	dev, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	stream := dev.NewStream() // so that no request waits for the work of another
	defer stream.Close()
	x := imagex.FromImageOn(stream, img, imagex.Options{DType: millrace.Float32, Channels: 1})
	if size.Width != side || size.Height != side {
		x = millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeLinear, Antialias: true}, side, side)
	}
	return millrace.Values[float32](x)
}
