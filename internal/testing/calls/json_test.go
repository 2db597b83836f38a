package calls_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestJSON checks that tensors of all dtypes are the same after writing and reading JSON.
func TestJSON(t *testing.T) {
	d := openCPU(t, "cpu")
	inf := math.Inf(1)
	for _, c := range []struct {
		x    *tensor
		want string
	}{
		{millrace.FromSliceOn(d, []float32{0.1, float32(math.Copysign(0, -1)), 1e20, -3}, 2, 2), `{"dtype":"float32","shape":[2,2],"data":[0.1,-0,1e+20,-3]}`},
		{millrace.FromSliceOn(d, []float64{math.NaN(), inf, -inf, 5e-324}), `{"dtype":"float64","shape":[4],"data":["NaN","Infinity","-Infinity",5e-324]}`},
		{millrace.FromSliceOn(d, []bool{true, false}), `{"dtype":"bool","shape":[2],"data":[true,false]}`},
		{millrace.FromSliceOn(d, []uint8{0, 255}), `{"dtype":"uint8","shape":[2],"data":[0,255]}`},
		{millrace.FromSliceOn(d, []uint16{65535}), `{"dtype":"uint16","shape":[1],"data":[65535]}`},
		{millrace.FromSliceOn(d, []uint32{math.MaxUint32}), `{"dtype":"uint32","shape":[1],"data":[4294967295]}`},
		{millrace.FromSliceOn(d, []uint64{math.MaxUint64}), `{"dtype":"uint64","shape":[1],"data":[18446744073709551615]}`},
		{millrace.FromSliceOn(d, []int8{-128, 127}, 1, 2), `{"dtype":"int8","shape":[1,2],"data":[-128,127]}`},
		{millrace.FromSliceOn(d, []int16{-32768}), `{"dtype":"int16","shape":[1],"data":[-32768]}`},
		{millrace.FromSliceOn(d, []int32{math.MinInt32}), `{"dtype":"int32","shape":[1],"data":[-2147483648]}`},
		{millrace.ScalarOn(d, int64(math.MinInt64)), `{"dtype":"int64","shape":[],"data":[-9223372036854775808]}`},
		{millrace.FromSliceOn(d, []float32{65504, 0.1}).Cast(millrace.Float16), `{"dtype":"float16","shape":[2],"data":[65504,0.099975586]}`},
		{millrace.FromSliceOn(d, []float32{1.5, inf32()}).Cast(millrace.BFloat16), `{"dtype":"bfloat16","shape":[2],"data":[1.5,"Infinity"]}`},
		{millrace.ZerosOn(d, millrace.Float32, 3, 0), `{"dtype":"float32","shape":[3,0],"data":[]}`},
		{millrace.FromSliceOn(d, []int32{1, 2, 3, 4}, 2, 2).T(), `{"dtype":"int32","shape":[2,2],"data":[1,3,2,4]}`},
	} {
		got, err := json.Marshal(c.x)
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
			continue
		}
		var y *tensor // first without a value, then with another value
		for range 2 {
			if err := json.Unmarshal(got, &y); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			again, err := json.Marshal(y)
			if err != nil || string(again) != c.want || y.DType() != c.x.DType() || fmt.Sprint(y.Shape()) != fmt.Sprint(c.x.Shape()) {
				t.Errorf("back: %s, %v, want %s", again, err, c.want)
			}
			if err := y.AddScalar(0).Err(); err != nil && y.DType() != millrace.Bool {
				t.Error(err)
			}
			y.Set(millrace.ZerosOn(d, millrace.Uint8, 2))
		}
	}
	var holder struct{ W, None *tensor }
	if err := json.Unmarshal([]byte(`{"W": {"dtype":"int8","shape":[1],"data":[7]}, "None": null}`), &holder); err != nil || holder.None != nil || holder.W.Len() != 1 {
		t.Errorf("in a struct: %v", err)
	}
}

func inf32() float32 { return float32(math.Inf(1)) }

// TestBadJSON checks that invalid JSON is an error and leaves the tensor unchanged.
func TestBadJSON(t *testing.T) {
	d := openCPU(t, "cpu")
	x := millrace.FromSliceOn(d, []int8{1, 2})
	for text, want := range map[string]error{
		`{}`:                              millrace.ErrDType,
		`{"dtype":"float32"}`:             millrace.ErrShape,
		`{"dtype":"float32","shape":[1]}`: millrace.ErrShape,
		`{"dtype":"float32","data":[1]}`:  millrace.ErrShape,
		`{"dtype":"float31","shape":[1],"data":[1]}`:                      millrace.ErrDType,
		`{"dtype":"float32","shape":[2],"data":[1]}`:                      millrace.ErrShape,
		`{"dtype":"float32","shape":[-1],"data":[]}`:                      millrace.ErrShape,
		`{"dtype":"float32","shape":[-1,-1],"data":[1]}`:                  millrace.ErrShape,
		`{"dtype":"int8","shape":[99999999999,99999999999,4],"data":[1]}`: nil,
		`{"dtype":"int8","shape":[1,1,1,1,1,1,1,1,1],"data":[1]}`:         millrace.ErrShape,
		`{"dtype":"int8","shape":[1],"data":[128]}`:                       millrace.ErrDType,
		`{"dtype":"int8","shape":[1],"data":[1.5]}`:                       millrace.ErrDType,
		`{"dtype":"uint8","shape":[1],"data":[-1]}`:                       millrace.ErrDType,
		`{"dtype":"bool","shape":[1],"data":[1]}`:                         millrace.ErrDType,
		`{"dtype":"float32","shape":[1],"data":[1e39]}`:                   millrace.ErrDType,
		`{"dtype":"float16","shape":[1],"data":[70000]}`:                  millrace.ErrDType,
		`{"dtype":"float64","shape":[1],"data":["nan"]}`:                  millrace.ErrDType,
		`{"dtype":"float64","shape":[1],"data":[null]}`:                   millrace.ErrDType,
		`{"dtype":"float64","shape":[1],"data":[[1]]}`:                    millrace.ErrDType,
		`{"dtype":"float64","shape":[1.5],"data":[1]}`:                    nil,
		`{"dtype":"float64","shape":{},"data":[1]}`:                       nil,
		`[1, 2]`: nil,
	} {
		n := line() + 1
		err := json.Unmarshal([]byte(text), x)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("json_test.go:%d", n)) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		if v, err := millrace.Values[int8](x); err != nil || v[1] != 2 {
			t.Errorf("after %s: %v, %v", text, v, err)
		}
	}
	many := `{"dtype":"int8","shape":[1048577],"data":[0` + strings.Repeat(",0", millrace.MaxJSON) + `]}`
	if err := x.UnmarshalJSON([]byte(many)); !errors.Is(err, millrace.ErrShape) {
		t.Errorf("too many: %v", err)
	}
	if _, err := json.Marshal(millrace.ZerosOn(d, millrace.Int8, millrace.MaxJSON+1)); !errors.Is(err, millrace.ErrShape) {
		t.Errorf("too many: %v", err)
	}
	if _, err := json.Marshal(millrace.OnesOn(d, millrace.Int8, 2).Add(millrace.OnesOn(d, millrace.Int8, 3))); !errors.Is(err, millrace.ErrShape) {
		t.Errorf("of an error: %v", err)
	}
	var none *tensor
	if err := none.UnmarshalJSON([]byte(many)); err == nil {
		t.Error("into a nil tensor")
	}
	x.Release()
	if _, err := x.MarshalJSON(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("released: %v", err)
	}
}
