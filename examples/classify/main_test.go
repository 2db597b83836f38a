package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/nn"
)

// taught is one model for all tests.
var taught = sync.OnceValues(func() (nn.Module, error) { return learned(context.Background(), "", 1000, 5) })

func encoded(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func started(t testing.TB) string {
	t.Helper()
	model, err := taught()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClassifier(model)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(c)
	t.Cleanup(func() { h.Close(); _ = c.batch.Close() })
	return h.URL + "/classify"
}

// post gives a response's code and text.
func post(url string, body []byte) (int, string, error) {
	r, err := http.Post(url, "image/png", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

type response struct {
	Label         string
	Probabilities map[string]float64
}

func classified(url string, body []byte) (r response, err error) {
	code, text, err := post(url, body)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d: %s", code, text)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}

// TestShapes: pictures of other sizes than it has learned are known, in colours and in gray,
// and one's answer is the same alone and among those of others.
func TestShapes(t *testing.T) {
	url := started(t)
	r := rand.New(rand.NewPCG(9, 9))
	var bodies [][]byte
	var alone []response
	right := 0
	for i := range 40 {
		label := i % len(labels)
		var img image.Image = draw(r, label, []int{side, 48, 100}[i%3])
		if i%2 == 1 {
			img = coloured(img)
		}
		body := encoded(t, img)
		got, err := classified(url, body)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range got.Probabilities {
			sum += p
		}
		if math.Abs(sum-1) > 1e-5 || len(got.Probabilities) != len(labels) || got.Probabilities[got.Label] < 0.25 {
			t.Errorf("%+v", got)
		}
		if got.Label == labels[label] {
			right++
		}
		bodies, alone = append(bodies, body), append(alone, got)
	}
	if right < 32 {
		t.Errorf("%d of 40 right", right)
	}
	var wg sync.WaitGroup
	for i, body := range bodies {
		wg.Go(func() {
			for range 5 {
				got, err := classified(url, body)
				if err != nil || got.Label != alone[i].Label {
					t.Errorf("%+v, alone %+v: %v", got, alone[i], err)
				}
				for l, p := range got.Probabilities {
					if p != alone[i].Probabilities[l] {
						t.Errorf("%s: %v, alone %v", l, p, alone[i].Probabilities[l])
					}
				}
			}
		})
	}
	wg.Wait()
}

// coloured is an image as one of colours and transparency.
func coloured(img image.Image) image.Image {
	b := img.Bounds()
	c := image.NewNRGBA(b)
	for y := range b.Dy() {
		for x := range b.Dx() {
			g := color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y
			c.SetNRGBA(x, y, color.NRGBA{g, g, g, 255})
		}
	}
	return c
}

// claims is a PNG's header that says it is so large, and nothing else.
func claims(width, height uint32) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d")
	chunk := []byte("IHDR")
	chunk = binary.BigEndian.AppendUint32(chunk, width)
	chunk = binary.BigEndian.AppendUint32(chunk, height)
	chunk = append(chunk, 8, 0, 0, 0, 0)
	b.Write(chunk)
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk)))
	return b.Bytes()
}

// TestBadRequests: each has a code and a text that says what is wrong, and the next request is
// answered.
func TestBadRequests(t *testing.T) {
	url := started(t)
	good := encoded(t, draw(rand.New(rand.NewPCG(1, 1)), 0, side))
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, image.NewGray(image.Rect(0, 0, side, side)), nil); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(good)
	damaged[len(damaged)/2] ^= 0xff
	for _, row := range []struct {
		what string
		body []byte
		code int
		text string
	}{
		{"nothing", nil, 400, "no PNG"},
		{"a text", []byte("<html>"), 400, "no PNG"},
		{"a JPEG", jpg.Bytes(), 400, "not a PNG"},
		{"a header", good[:8], 400, "no PNG"},
		{"half of it", good[:len(good)/2], 400, "damaged"},
		{"without its end", good[:len(good)-13], 400, "damaged"},
		{"another byte", damaged, 400, "damaged"},
		{"wide", claims(1<<31-1, 1), 400, "pixels"},
		{"large", claims(100_000, 100_000), 400, "pixels"},
		{"no pixels", claims(0, 5), 400, "no PNG"},
		{"no data", claims(4, 4), 400, "damaged"},
		{"too many bytes", append(bytes.Clone(good), make([]byte, mostBytes)...), 413, "too large"},
	} {
		code, text, err := post(url, row.body)
		if err != nil || code != row.code || !strings.Contains(text, row.text) {
			t.Errorf("%s: %d %q, %v", row.what, code, text, err)
		}
		if _, err := classified(url, good); err != nil {
			t.Fatalf("after %s: %v", row.what, err)
		}
	}
	for method, path := range map[string]string{"GET": "/classify", "PUT": "/classify", "POST": "/other"} {
		q, err := http.NewRequest(method, strings.TrimSuffix(url, "/classify")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != 405 && r.StatusCode != 404 {
			t.Errorf("%s %s: %d", method, path, r.StatusCode)
		}
	}
}

// TestGone: clients that go leave the server as it was.
func TestGone(t *testing.T) {
	url := started(t)
	good := encoded(t, draw(rand.New(rand.NewPCG(1, 1)), 1, 200))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			defer cancel()
			q, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(good))
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := http.DefaultClient.Do(q); err == nil {
				r.Body.Close()
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := classified(url, good); err != nil {
		t.Error(err)
	}
}

// TestServe: it stops when it is told to, having answered; an address that is taken is an error.
func TestServe(t *testing.T) {
	model, err := taught()
	if err != nil {
		t.Fatal(err)
	}
	busy := httptest.NewServer(http.NotFoundHandler())
	defer busy.Close()
	served := func(ctx context.Context, address string) error {
		c, err := newClassifier(model)
		if err != nil {
			return err
		}
		return listen(ctx, address, c)
	}
	if err := served(t.Context(), busy.Listener.Addr().String()); err == nil {
		t.Error("no error of an address that is taken")
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- served(ctx, "127.0.0.1:0") }()
	stop()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// TestWeights: what one start has learned the next one loads, and another file is an error.
func TestWeights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "shapes.safetensors")
	if _, err := learned(t.Context(), path, 50, 1); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // training would be an error
	if _, err := learned(ended, path, 50, 1); err != nil {
		t.Error(err)
	}
	other := filepath.Join(t.TempDir(), "other.safetensors")
	if err := nn.Save(other, nn.NewLinear(2, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := learned(t.Context(), other, 50, 1); err == nil {
		t.Error("no error of the weights of another model")
	}
}
