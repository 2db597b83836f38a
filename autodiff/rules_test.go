package autodiff_test

import (
	"testing"

	"github.com/millrace-go/millrace/internal/gradcases"
)

func TestRules(t *testing.T) {
	for _, c := range gradcases.Cases {
		t.Run(c.Name, func(t *testing.T) { check(t, c.F, c.Ops...) })
	}
}
