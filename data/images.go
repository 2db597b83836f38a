package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // a format that Images reads
	_ "image/png"  // the other one
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// ImageOptions say how images are read. The zero value is for colours.
type ImageOptions struct {
	Gray bool // one channel, brightness, instead of three
}

// Folder is a folder of images with one folder for each class: see [Images].
type Folder struct {
	Classes []string // names of the folders, sorted; a label is an index in it
	Files   []string // file of each record

	labels []int32
	opt    ImageOptions
	size   image.Point
}

// maxPixels limits the memory that an image file can demand.
const maxPixels = 1 << 26

// Images lists a folder with one folder for each class. These and the folders below them hold files
// whose names end in .png, .jpg or .jpeg; other files are ignored. Images are X: Uint8 of shape (3,
// height, width), red, green and blue, or (1, height, width) for Gray. Transparency is dropped, and
// 16 bits become 8. Labels are Y: Int32. The order is by folder name, then by file name.
//
// Images are decoded when they are read. All must have the size of the first one; another size is
// an error that names the file and both sizes. A folder without classes, or a class without images,
// is an error.
func Images(dir string, opt ImageOptions) (*Folder, error) {
	s := &Folder{opt: opt}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	for _, e := range entries { // sorted by name
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // follows links to folders
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		switch {
		case info.IsDir():
			err = s.class(path, e.Name())
		case isImage(path):
			err = fmt.Errorf("%s: %w", path, bad("the image is not in a folder of a class"))
		}
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	if len(s.Files) == 0 {
		return nil, fmt.Errorf("data: %s: %w", dir, bad("it has no folders of images"))
	}
	if err := s.measure(); err != nil {
		return nil, fmt.Errorf("data: %w", s.fault(0, err))
	}
	return s, nil
}

// checkFolder returns an error for a file in place of a folder, with the kind that it seems to be.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.IsDir() {
		return err
	}
	err = bad("it is a file, not a folder with a folder of images for each class")
	if f, openErr := sniff.Open(dir); openErr == nil {
		defer f.Close()
		err = sniff.With(err, sniff.Head(f))
	}
	return fmt.Errorf("%s: %w", dir, err)
}

func isImage(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg":
		return true
	}
	return false
}

// class adds the images below a folder.
func (s *Folder) class(dir, name string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isImage(path) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: %w", dir, bad("the class has no images"))
	}
	slices.Sort(files)
	s.Files = append(s.Files, files...)
	s.labels = append(s.labels, slices.Repeat([]int32{int32(len(s.Classes))}, len(files))...)
	s.Classes = append(s.Classes, name)
	return nil
}

// measure takes the size from the first image.
func (s *Folder) measure() error {
	f, err := os.Open(s.Files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return sniff.With(broken(err), sniff.Head(f), sniff.PNG, sniff.JPEG)
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return bad("the image has %d by %d pixels", c.Width, c.Height)
	}
	s.size = image.Pt(c.Width, c.Height)
	return nil
}

func (s *Folder) fault(i int, err error) error { return &RecordError{s.Files[i], i, err} }

// Len is the number of images.
func (s *Folder) Len() int { return len(s.Files) }

// Fields are the image X and its label Y.
func (s *Folder) Fields() []Field {
	channels := 3
	if s.opt.Gray {
		channels = 1
	}
	return []Field{
		{"image", millrace.Uint8, []int{channels, s.size.Y, s.size.X}},
		{"label", millrace.Int32, nil},
	}
}

// Read decodes image i into dst[0], Uint8, and writes its label to dst[1], Int32. A file that
// cannot be read, that is no image, or whose image has another size than the first one is a
// [*RecordError]; except for errors of the file system it wraps [ErrFormat].
func (s *Folder) Read(i int, dst []any) error {
	file, err := os.ReadFile(s.Files[i])
	if err != nil {
		return s.fault(i, err)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return s.fault(i, sniff.With(broken(err), file, sniff.PNG, sniff.JPEG))
	}
	if size := image.Pt(c.Width, c.Height); size != s.size {
		return s.fault(i, bad("%d by %d pixels, and %s has %d by %d", size.X, size.Y, s.Files[0], s.size.X, s.size.Y))
	}
	img, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return s.fault(i, broken(err))
	}
	if img.Bounds().Size() != s.size {
		return s.fault(i, bad("%v pixels, but the header says %v", img.Bounds().Size(), s.size))
	}
	if s.opt.Gray {
		gray(dst[0].([]uint8), img)
	} else {
		planes(dst[0].([]uint8), img)
	}
	dst[1].([]int32)[0] = s.labels[i]
	return nil
}

// planes separates an image into red, green and blue.
func planes(dst []uint8, img image.Image) {
	pix, stride := rgba(img)
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	r, g, b := dst[:w*h], dst[w*h:2*w*h], dst[2*w*h:]
	for y := range h {
		row := pix[y*stride : y*stride+4*w]
		for x := range w {
			p := row[4*x : 4*x+3 : 4*x+3]
			r[y*w+x], g[y*w+x], b[y*w+x] = p[0], p[1], p[2]
		}
	}
}

// gray computes the brightness of an image, as image/color defines it.
func gray(dst []uint8, img image.Image) {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if g, ok := img.(*image.Gray); ok {
		for y := range h {
			copy(dst[y*w:(y+1)*w], g.Pix[y*g.Stride:])
		}
		return
	}
	pix, stride := rgba(img)
	for y := range h {
		for x := range w {
			p := pix[y*stride+4*x:]
			c := color.GrayModel.Convert(color.RGBA{p[0], p[1], p[2], 0xff})
			dst[y*w+x] = c.(color.Gray).Y
		}
	}
}

// rgba returns an image's pixels as four bytes each, of which the last one is not used. Colours are
// not multiplied by their transparency.
func rgba(img image.Image) (pix []uint8, stride int) {
	switch img := img.(type) {
	case *image.NRGBA:
		return img.Pix, img.Stride
	case *image.RGBA: // decoders return it for files without transparency
		return img.Pix, img.Stride
	case *image.YCbCr, *image.Gray, *image.CMYK:
		dst := image.NewRGBA(image.Rectangle{Max: img.Bounds().Size()})
		draw.Draw(dst, dst.Rect, img, img.Bounds().Min, draw.Src)
		return dst.Pix, dst.Stride
	}
	size := img.Bounds()
	dst := image.NewNRGBA(image.Rectangle{Max: size.Size()})
	for y := range size.Dy() {
		for x := range size.Dx() {
			dst.Set(x, y, img.At(size.Min.X+x, size.Min.Y+y))
		}
	}
	return dst.Pix, dst.Stride
}
