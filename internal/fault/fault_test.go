package fault

import (
	"errors"
	"testing"
)

func TestHit(t *testing.T) {
	defer Reset()
	if err := Hit(Alloc); err != nil {
		t.Fatalf("unarmed: %v", err)
	}
	Set(Alloc, 2)
	if err := Hit(Compile); err != nil {
		t.Errorf("another point: %v", err)
	}
	for i := range 3 {
		err := Hit(Alloc)
		var fe *Error
		if want := i < 2; errors.As(err, &fe) != want {
			t.Errorf("hit %d: %v", i, err)
		}
	}
	Set(Load, -1)
	for range 5 {
		if Hit(Load) == nil {
			t.Error("a point armed for good let a hit pass")
		}
	}
	Set(Load, 0)
	if err := Hit(Load); err != nil {
		t.Errorf("disarmed: %v", err)
	}
	SetAfter(File, 2, 1)
	for i := range 4 {
		if err := Hit(File); (err != nil) != (i == 2) {
			t.Errorf("hit %d after two that pass: %v", i, err)
		}
	}
}
