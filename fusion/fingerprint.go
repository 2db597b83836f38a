package fusion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Version covers everything that decides how a plan looks and what it means: this package, the form
// of kernels, and the binding of plans. digest is the digest of the golden files. A test checks it,
// so a change that the golden files show changes the version. Raise epoch by hand for changes that
// no golden file shows.
const (
	epoch  = 6
	digest = 0xe7b67ef7ffa9a56e
)

// Version names the version of the plans that this program makes and understands.
func Version() string { return fmt.Sprintf("%d.%016x", epoch, uint64(digest)) }

// Fingerprint stands for everything that a plan depends on besides the segment: Version, the fields
// of a device's caps that Explore reads, and the mode. The segment's form covers the meaning of its
// ops. A fingerprint is one line of name=value pairs with spaces between. Plans of equal
// fingerprints may replace each other, in any process and on any machine. [Unfit] says whether
// plans of another fingerprint may be used, too.
func Fingerprint(caps *runtime.Caps, mode Mode) string {
	text := fmt.Sprintf("fusion=%s device=%s mode=%s elem=%s bandwidth=%g launch=%g op=%g operands=%d slots=%d scalars=%d body=%d rowops=%d bindings=%d",
		Version(), caps.Name, mode, elemSizes(caps), caps.Bandwidth, caps.LaunchCost, caps.OpCost,
		caps.MaxOperands, caps.MaxSlots, caps.MaxScalars, caps.MaxBody, caps.MaxRowOps, caps.MaxBindings)
	if caps.StretchCost > 0 {
		text += fmt.Sprintf(" stretch=%g", caps.StretchCost)
	}
	if caps.Denormals == ir.FlushDenormals {
		text += " denormals=flush"
	}
	return text
}

// elemSizes lists the dtypes whose elements the device stores in other sizes than Go does, with the
// sizes. So a new dtype changes no fingerprint where its size is Go's.
func elemSizes(caps *runtime.Caps) string {
	var list []string
	for d, n := range caps.ElemSize {
		if d := ir.DType(d); d.Tensor() && n > 0 && n != d.Size() {
			list = append(list, d.String()+":"+strconv.Itoa(n))
		}
	}
	if list == nil {
		return "own"
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// FingerprintField is the value of a field of a fingerprint, such as "device"; "" if there is no
// such field.
func FingerprintField(fingerprint, name string) string {
	for word := range strings.FieldsSeq(fingerprint) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// printFields lists the fields of a fingerprint, each with the message for plans that differ in it:
// first the plans' value, then this device's. A kernel that keeps a lower limit also keeps a higher
// one.
var printFields = []struct {
	name, why string
	fits      func(theirs, here string) bool
}{
	{"fusion", "plans of version %s, this is %s", equal},
	{"device", "for device %s, this is %s", equal},
	{"mode", "fusion mode %s, this is %s", equal},
	{"elem", "elements of other sizes in memory: %s, here %s", equal},
	{"bandwidth", "for a device that moves %s bytes a second, this is taken for one of %s", equal},
	{"launch", "for a device that takes %s seconds a launch, this is taken for one of %s", equal},
	{"op", "for a device that takes %s seconds an operation, this is taken for one of %s", equal},
	{"operands", "kernels of up to %s operands, here %s", atMost},
	{"slots", "kernels of up to %s operands with those of positions alone, here %s", atMost},
	{"scalars", "kernels of up to %s scalars, here %s", atMost},
	{"denormals", "for arithmetic where denormals are: flush? %s, here %s", equal},
	{"body", "kernels of up to %s instructions, here %s", atMost},
	{"rowops", "kernels of up to %s row ops in one phase, here %s", atMost},
	{"bindings", "kernels of up to %s operands and results of row ops, here %s", atMost},
}

// ofProgram is the number of fields that are the same for all devices of a program.
const ofProgram = 1

func equal(a, b string) bool { return a == b }

func atMost(theirs, here string) bool {
	a, errA := strconv.Atoi(theirs)
	b, errB := strconv.Atoi(here)
	return errA == nil && errB == nil && (b == 0 || a != 0 && a <= b) // 0: no limit
}

// Unfit says why plans of fingerprint theirs cannot be used where the fingerprint is here; "" if
// they can.
func Unfit(theirs, here string) string { return unfit(len(printFields), theirs, here) }

// Foreign says why no device of this program can use plans of fingerprint theirs, which are of
// another version; "" if their version is this program's.
func Foreign(theirs string) string {
	return unfit(ofProgram, theirs, "fusion="+Version())
}

func unfit(fields int, theirs, here string) string {
	for _, f := range printFields[:fields] {
		a, b := FingerprintField(theirs, f.name), FingerprintField(here, f.name)
		if !f.fits(a, b) {
			return fmt.Sprintf(f.why, orNone(a), orNone(b))
		}
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
