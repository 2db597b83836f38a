package report

import (
	"encoding/json"
	"io"
)

// Write writes the page.
func Write(w io.Writer, r *Report) error { return json.NewEncoder(w).Encode(r) }
