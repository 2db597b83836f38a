//go:build cgo

package cpu

import "testing"

func init() {
	panelsWalked = nativePanels
	newContractors = append(newContractors, func(t testing.TB, threads int) map[string]contractor {
		native, err := newNativeContractors(threads)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]contractor{}
		for name, c := range native {
			t.Cleanup(c.close)
			all[name] = c
		}
		return all
	})
}
