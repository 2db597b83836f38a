package main

import (
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	if _, err := run(context.Background(), options{batch: 8, epochs: 1, steps: 3, layers: 1, lr: 0.1}); err != nil {
		t.Fatal(err)
	}
}

func TestImages(t *testing.T) {
	dir := t.TempDir()
	for class := range 2 {
		folder := filepath.Join(dir, strconv.Itoa(class))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			m := image.NewRGBA(image.Rect(0, 0, 16, 16))
			m.Set(i, class, color.White)
			f, err := os.Create(filepath.Join(folder, strconv.Itoa(i)+".png"))
			if err != nil {
				t.Fatal(err)
			}
			if err := png.Encode(f, m); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	if _, err := run(context.Background(), options{images: dir, batch: 4, epochs: 1, layers: 1, lr: 0.1}); err != nil {
		t.Fatal(err)
	}
	if _, err := run(context.Background(), options{cifar: dir, batch: 4, epochs: 1, layers: 1}); err == nil {
		t.Error("a folder without CIFAR-10 in it works")
	}
}
