package dist

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// Same compares parameters bit by bit among all ranks, but for those of which each rank has another
// part. ErrMismatch names the first one that
// differs, and which ranks have the same bits. All ranks return it, and the World goes on.
func (w *World) Same(ctx context.Context, params ...nn.Named) error {
	c, hashes, fault := w.comparison("same", params)
	c.fault = fault
	c.run = func() error { return w.compare(params, hashes) }
	return w.do(ctx, c)
}

// comparison is a call with a line for each parameter, and a hash of each one's elements.
func (w *World) comparison(op string, params []nn.Named) (c *call, hashes []byte, err error) {
	c = &call{plan: plan{op: op}}
	for _, p := range params {
		t := p.Tensor()
		c.plan.tensors = append(c.plan.tensors, p.Name+" "+form(t))
		h := xxhash.New()
		if _, bad := t.WriteTo(h); bad != nil && err == nil {
			err = fmt.Errorf("%q: %w", p.Name, bad)
		}
		hashes = binary.LittleEndian.AppendUint64(hashes, h.Sum64())
	}
	return c, hashes, err
}

func (w *World) compare(params []nn.Named, hashes []byte) error {
	all, err := w.gather(hashes, w.equal(len(hashes)))
	if err != nil {
		return err
	}
	for i, p := range params {
		has := make([]string, w.info.Size)
		for r := range has {
			has[r] = fmt.Sprintf("%016x", binary.LittleEndian.Uint64(all[r*len(hashes)+8*i:]))
		}
		if hold.PartOf(p.Param) == nil && !equal(has) {
			return differ(fmt.Sprintf("%s has other bits, by their hashes: %s", p.Name, who(has, "has", "have")))
		}
	}
	return nil
}

// JSON is a part for [World.Save] and [World.Load]: the value of v as JSON, in a uint8 tensor of this
// name. For Load v is a pointer.
func JSON(name string, v any) any { return &jsonPart{name: name, v: v} }

type jsonPart struct {
	name string
	v    any
	at   *nn.Param
}

// State makes the part a module of one parameter.
func (j *jsonPart) State() []nn.Named { return []nn.Named{{Name: j.name, Param: j.at}} }

// write makes the parameter from v.
func (j *jsonPart) write() error {
	text, err := json.Marshal(j.v)
	if err != nil {
		return fmt.Errorf("%q: %w", j.name, err)
	}
	j.at = nn.NewBuffer(millrace.FromSlice(text))
	return nil
}

// shape makes a parameter of the size that a file's entry has.
func (j *jsonPart) shape(f *safetensors.File) error {
	n := 0
	info, err := f.Info(j.name)
	if err == nil && len(info.Shape) == 1 { // else loading reports the mismatch
		n = info.Shape[0]
	}
	j.at = nn.NewBuffer(millrace.Zeros(millrace.Uint8, n))
	return nil
}

// read sets v.
func (j *jsonPart) read() error {
	text, err := millrace.Values[uint8](j.at.Tensor())
	if err == nil {
		err = json.Unmarshal(text, j.v)
	}
	if err != nil {
		err = fmt.Errorf("%q: %w", j.name, err)
	}
	return err
}

// jsonParts calls f for each JSON part.
func jsonParts(parts []any, f func(*jsonPart) error) error {
	for _, p := range parts {
		if j, ok := p.(*jsonPart); ok {
			if err := f(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// release ends the parameters of JSON parts.
func release(parts []any) {
	jsonParts(parts, func(j *jsonPart) error {
		if j.at != nil {
			j.at.Tensor().Release()
			j.at = nil
		}
		return nil
	})
}

// Save compares the parts on all ranks, as [World.Same] does, and writes rank 0's to a file, as
// nn.Save does. All ranks wait for the result. Parts are those of nn.Save, and [JSON]. State that is
// divided among the ranks is put together on rank 0, so the file fits any number of ranks.
//
// An error of the file is an error of all ranks; an old file is then unchanged, and the World goes
// on. Parts that cannot be compared, such as two of one name, end the World. No step of an optimiser
// may run meanwhile. Save does not end early when ctx ends, because the other ranks wait for this one.
// The Deadline must be longer than writing the file takes.
func (w *World) Save(_ context.Context, path string, parts ...any) error {
	defer release(parts)
	fault := jsonParts(parts, (*jsonPart).write)
	var params []nn.Named
	if fault == nil {
		params, fault = nn.Parts(parts...)
	}
	c, hashes, err := w.comparison("save", params)
	if c.fault = fault; fault == nil {
		c.fault = err
	}
	if c.fault == nil {
		c.fault = w.own(params)
	}
	c.run = func() error {
		if err := w.compare(params, hashes); err != nil {
			return err
		}
		all, release, err := w.whole(params)
		if err != nil {
			return err
		}
		defer release()
		if w.info.Rank == 0 {
			w.onFile(func() { err = nn.Save(path, all) })
		}
		return w.agree(err)
	}
	return w.complete(c)
}

// agree returns nil if all ranks have nil. Otherwise it returns this rank's error, or else the text
// of the first rank that has one.
func (w *World) agree(own error) error {
	text := ""
	if own != nil {
		text = "x" + own.Error() // never empty
	}
	heads, err := w.heads(head{text: uint32(len(text))})
	if err != nil {
		return err
	}
	texts, err := w.texts(heads, text)
	if err != nil {
		return err
	}
	for r, t := range texts {
		if t != "" && own == nil {
			return fmt.Errorf("dist: rank %d (%s): %w", r, w.host(r), textError(t[1:]))
		}
	}
	return own
}

// Load reads a file of [World.Save] or nn.Save on rank 0 and sends it to all ranks, each of which
// loads its parts, as nn.Load does. The file is kept on the way in the folder for temporary files.
// An error of one rank is an error of all; the parts of the others may then have the file's values.
// Like Save, it does not end early when ctx ends.
func (w *World) Load(_ context.Context, path string, parts ...any) error {
	return w.complete(&call{plan: plan{op: "load"}, run: func() error { return w.load(path, parts) }})
}

func (w *World) load(path string, parts []any) error {
	local, err := path, error(nil)
	if w.info.Size > 1 {
		local, err = w.distribute(path)
		if w.info.Rank > 0 && local != "" {
			defer os.Remove(local)
		}
	}
	if err != nil {
		return err
	}
	w.onFile(func() { err = loadParts(local, parts) })
	return w.agree(err)
}

func loadParts(path string, parts []any) error {
	defer release(parts)
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := jsonParts(parts, func(j *jsonPart) error { return j.shape(f) }); err != nil {
		return err
	}
	if err := nn.Load(path, parts...); err != nil {
		return err
	}
	return jsonParts(parts, (*jsonPart).read)
}

// piece is how many bytes of a file are sent at once.
const piece = 16 << 20

// distribute sends rank 0's file at path to temporary files of the other ranks, and returns this
// rank's path.
func (w *World) distribute(path string) (local string, err error) {
	var f *os.File
	if w.info.Rank == 0 {
		local = path
		f, err = os.Open(path)
	} else if f, err = os.CreateTemp("", "millrace-*.safetensors"); err == nil {
		local = f.Name()
	}
	if f != nil {
		defer f.Close()
	}
	if err := w.agree(err); err != nil {
		return local, err
	}
	buf := aligned(8 + piece) // the number of bytes that follow
	for {
		n := 0
		if w.info.Rank == 0 && err == nil {
			if n, err = io.ReadFull(f, buf[8:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
		}
		binary.LittleEndian.PutUint64(buf, uint64(n))
		if err := w.broadcast(buf[:8], 0); err != nil {
			return local, err
		}
		if n = int(binary.LittleEndian.Uint64(buf)); n == 0 {
			break
		}
		if err := w.broadcast(buf[8:8+n], 0); err != nil {
			return local, err
		}
		if w.info.Rank > 0 && err == nil {
			_, err = f.Write(buf[8 : 8+n])
		}
	}
	return local, w.agree(err)
}
