package nocache

import "os"

func init() {
	if os.Getenv("MILLRACE_CACHE") == "" {
		os.Setenv("MILLRACE_CACHE", "off")
	}
}
