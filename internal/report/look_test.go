package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLook(t *testing.T) {
	dir := os.Getenv("LOOK")
	os.MkdirAll(dir, 0o755)
	file := write(t, sample(2500))
	for _, dark := range []bool{false, true} {
		for _, w := range []int{1200, 600} {
			b := start(t, dark, w, 3600)
			b.open(file)
			time.Sleep(500 * time.Millisecond)
			name := map[bool]string{false: "light", true: "dark"}[dark] + map[int]string{1200: "1200", 600: "600"}[w]
			os.WriteFile(filepath.Join(dir, name+".png"), b.screenshot(), 0o644)
			b.eval("document.querySelector('tr.kernel button').click(); document.querySelectorAll('#plans details')[0].open = true", nil)
			time.Sleep(300 * time.Millisecond)
			os.WriteFile(filepath.Join(dir, name+"-open.png"), b.screenshot(), 0o644)
			for _, c := range b.complaints() {
				t.Error(c)
			}
		}
	}
}

func write(t *testing.T, r *Report) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, r); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
