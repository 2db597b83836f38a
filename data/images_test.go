package data_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/internal/testing/filetest"
)

func encoded(t testing.TB, img image.Image, asJPEG bool) []byte {
	t.Helper()
	var b bytes.Buffer
	err := png.Encode(&b, img)
	if asJPEG {
		b.Reset()
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// put makes a file and the folders above it.
func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, content, 0o666)); err != nil {
		t.Fatal(err)
	}
}

// painted makes images of many kinds with the color f at each place.
func painted(w, h int, f func(x, y int) color.NRGBA) map[string]interface {
	image.Image
	Set(x, y int, c color.Color)
} {
	r := image.Rect(0, 0, w, h)
	wide := image.Rect(-3, -2, w+2, h+1)
	all := map[string]interface {
		image.Image
		Set(x, y int, c color.Color)
	}{
		"nrgba": image.NewNRGBA(r), "rgba": image.NewRGBA(r), "nrgba64": image.NewNRGBA64(r), "rgba64": image.NewRGBA64(r),
		"part": image.NewNRGBA(wide).SubImage(r).(*image.NRGBA),
	}
	var p color.Palette
	for y := range h {
		for x := range w {
			if c := f(x, y); !slices.Contains(p, color.Color(c)) {
				p = append(p, c)
			}
		}
	}
	all["paletted"] = image.NewPaletted(r, p)
	for _, img := range all {
		for y := range h {
			for x := range w {
				img.Set(x, y, f(x, y))
			}
		}
	}
	return all
}

func TestImages(t *testing.T) {
	const w, h = 5, 3
	shade := func(x, y int) color.NRGBA { return color.NRGBA{uint8(40 * x), uint8(60 * y), uint8(200 - 10*x*y), 255} }
	dir := t.TempDir()
	k := 0
	for name, img := range painted(w, h, shade) {
		put(t, filepath.Join(dir, []string{"b", "a"}[k%2], fmt.Sprint(name, ".PNG")), encoded(t, img, false))
		k++
	}
	put(t, filepath.Join(dir, "c", "deeper", "x.png"), encoded(t, painted(w, h, shade)["nrgba"], false))
	put(t, filepath.Join(dir, "c", "notes.txt"), []byte("hello"))
	put(t, filepath.Join(dir, "README"), []byte("hello"))
	s, err := data.Images(dir, data.ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Len(), s.Fields(), s.Classes); got != "7 [image uint8[3 3 5] label int32[]] [a b c]" {
		t.Error(got)
	}
	g, err := data.Images(dir, data.ImageOptions{Gray: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(g.Fields()[0]); got != "image uint8[1 3 5]" {
		t.Error(got)
	}
	for i := range s.Len() {
		dst, one := room(s), room(g)
		if err := errors.Join(s.Read(i, dst), g.Read(i, one)); err != nil {
			t.Fatal(err)
		}
		class, _ := filepath.Rel(dir, s.Files[i])
		if want := int32(class[0] - 'a'); dst[1].([]int32)[0] != want {
			t.Errorf("%s has the label %v", s.Files[i], dst[1])
		}
		p, gray := dst[0].([]uint8), one[0].([]uint8)
		for y := range h {
			for x := range w {
				c := shade(x, y)
				at := y*w + x
				if p[at] != c.R || p[h*w+at] != c.G || p[2*h*w+at] != c.B {
					t.Errorf("%s: pixel %d, %d is %d %d %d, want %v", s.Files[i], x, y, p[at], p[h*w+at], p[2*h*w+at], c)
				}
				if want := color.GrayModel.Convert(c).(color.Gray).Y; gray[at] != want {
					t.Errorf("%s: pixel %d, %d has the brightness %d, want %d", s.Files[i], x, y, gray[at], want)
				}
			}
		}
	}
	if !slices.IsSortedFunc(s.Files, strings.Compare) {
		t.Error(s.Files)
	}
}

// TestImageKinds: transparency is dropped, gray images have three equal channels, and JPEG is
// close.
func TestImageKinds(t *testing.T) {
	dir := t.TempDir()
	clear := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	gray := image.NewGray(clear.Rect)
	for i := range 64 {
		clear.SetNRGBA(i%8, i/8, color.NRGBA{10, 200, 30, uint8(4*i + 1)})
		gray.SetGray(i%8, i/8, color.Gray{uint8(3 * i)})
	}
	solid := image.NewRGBA(clear.Rect)
	for i := range solid.Pix {
		solid.Pix[i] = []uint8{10, 200, 30, 255}[i%4]
	}
	put(t, filepath.Join(dir, "x", "1.png"), encoded(t, clear, false))
	put(t, filepath.Join(dir, "x", "2.png"), encoded(t, gray, false))
	put(t, filepath.Join(dir, "x", "3.jpeg"), encoded(t, solid, true))
	put(t, filepath.Join(dir, "x", "4.jpg"), encoded(t, gray, true))
	put(t, filepath.Join(dir, "x", "5.png"), encoded(t, solid, true)) // the name is wrong
	s, err := data.Images(dir, data.ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= 4 }
	for i := range s.Len() {
		dst := room(s)
		if err := s.Read(i, dst); err != nil {
			t.Fatal(err)
		}
		p := dst[0].([]uint8)
		for at := range 64 {
			want := [3]uint8{10, 200, 30}
			if i == 1 || i == 3 {
				want = [3]uint8{uint8(3 * at), uint8(3 * at), uint8(3 * at)}
			}
			got := [3]uint8{p[at], p[64+at], p[128+at]}
			if i < 2 && got != want || !near(got[0], want[0]) || !near(got[1], want[1]) || !near(got[2], want[2]) {
				t.Fatalf("%s: pixel %d is %v, want %v", s.Files[i], at, got, want)
			}
		}
	}
}

func TestBadFolders(t *testing.T) {
	img := encoded(t, image.NewGray(image.Rect(0, 0, 4, 4)), false)
	empty := t.TempDir()
	noImages, loose, bare := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, filepath.Join(noImages, "a", "x.png"), img)
	put(t, filepath.Join(noImages, "b", "x.txt"), img)
	put(t, filepath.Join(loose, "a", "x.png"), img)
	put(t, filepath.Join(loose, "x.png"), img)
	put(t, filepath.Join(bare, "README"), img)
	for dir, want := range map[string]string{empty: empty, noImages: filepath.Join(noImages, "b"), loose: filepath.Join(loose, "x.png"), bare: bare} {
		if s, err := data.Images(dir, data.ImageOptions{}); s != nil || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v", s, err)
		}
	}
	if s, err := data.Images(filepath.Join(empty, "none"), data.ImageOptions{}); s != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Error(s, err)
	}
}

// hostile is the beginning of a PNG of w by h pixels, with nothing after it.
func hostile(w, h uint32) []byte {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	head = append(binary.BigEndian.AppendUint32(head, h), 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head))
}

// TestBadImages: a bad image ends a loop with its name, and does not hang it.
func TestBadImages(t *testing.T) {
	img := encoded(t, image.NewGray(image.Rect(0, 0, 4, 4)), false)
	photo := encoded(t, image.NewGray(image.Rect(0, 0, 4, 4)), true)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"size":         {encoded(t, image.NewGray(image.Rect(0, 0, 5, 4)), false), "5 by 4 pixels"},
		"empty":        {nil, "malformed"},
		"text":         {[]byte("hello"), "unknown format"},
		"cut png":      {img[:len(img)-20], "EOF"},
		"cut jpeg":     {photo[:len(photo)/2], "EOF"},
		"damaged":      {append(slices.Clone(img[:40]), bytes.Repeat([]byte{7}, 40)...), "malformed"},
		"size lies":    {hostile(10000, 10000), "10000 by 10000 pixels"},
		"nothing else": {hostile(4, 4), "EOF"},
	} {
		dir := t.TempDir()
		for i := range 20 {
			put(t, filepath.Join(dir, "a", fmt.Sprintf("%02d.png", i)), img)
		}
		path := filepath.Join(dir, "a", "13.png")
		put(t, path, c.file)
		s, err := data.Images(dir, data.ImageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		batches := 0
		for b, err := range loader(t, s, data.Options{Batch: 4, Workers: 3}).Batches(context.Background()) {
			if err == nil {
				batches++
				b.Release()
				continue
			}
			re, ok := errors.AsType[*data.RecordError](err)
			if !ok || re.File != path || re.Record != 13 || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if batches != 3 {
			t.Errorf("%s: %d batches before it", name, batches)
		}
	}
	for _, b := range [][]byte{hostile(10000, 10000), hostile(0, 4), []byte("hello"), nil} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a", "first.png")
		put(t, path, b)
		took := filetest.Allocated(func() {
			if s, err := data.Images(dir, data.ImageOptions{}); s != nil || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v, %v", s, err)
			}
		})
		if took > 1<<20 {
			t.Errorf("%d bytes were taken", took)
		}
	}
}
