package models

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace-go/millrace/internal/statusline"
	"github.com/millrace-go/millrace/nn"
)

// Progress is where a program says how far it is: in one line that changes on a terminal, in
// a line every ten seconds elsewhere.
func Progress() *statusline.Line { return statusline.New(os.Stdout, 10*time.Second) }

// Save writes parts to a file, in a folder that is made if need be, and says so.
func Save(path string, parts ...any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := nn.Save(path, parts...); err != nil {
		return err
	}
	fmt.Println("wrote", path)
	return nil
}
