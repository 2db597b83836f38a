package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// TestServer: a row's answer is the same alone and among others, and whoever asks beside.
func TestServer(t *testing.T) {
	s, err := newServer(4, 32, 3)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	defer h.Close()
	ask := func(body string) (int, string, error) {
		r, err := http.Post(h.URL+"/predict", "application/json", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return r.StatusCode, string(text), err
	}
	answer := func(body string) (got [][]float32, err error) {
		code, text, err := ask(body)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %s", code, text)
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		return got, err
	}
	row := func(i int) string { return fmt.Sprintf("[%d, -1, 0.5, %d]", i, i*i%7) }
	want := make([][]float32, 8)
	for i := range want {
		got, err := answer("[" + row(i) + "]")
		if err != nil {
			t.Fatal(err)
		}
		want[i] = got[0]
		if sum := got[0][0] + got[0][1] + got[0][2]; math.Abs(float64(sum)-1) > 1e-5 {
			t.Errorf("shares %v", got[0])
		}
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			rows := make([]string, n+1)
			for i := range rows {
				rows[i] = row(i)
			}
			for range 20 {
				got, err := answer("[" + strings.Join(rows, ",") + "]")
				if err != nil || !reflect.DeepEqual(got, want[:n+1]) {
					t.Errorf("%v, want %v: %v", got, want[:n+1], err)
				}
			}
		})
	}
	wg.Wait()
	for body, want := range map[string]int{"[]": 200, "{": 400, "[[1]]": 400, `["x"]`: 400} {
		if code, text, err := ask(body); err != nil || code != want {
			t.Errorf("%s: %d %s, %v", body, code, text, err)
		}
	}
}
