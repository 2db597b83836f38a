package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

// TestBadFlagValues gives every flag of every command bad values. The command must end with an
// error that names the flag or the value, before it times anything.
func TestBadFlagValues(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no bundle"), 0o666); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	positive := []string{"0", "-1", "x", "", "1.5", "1_0", "0x10", "99999999999", "99999999999999999999"}
	duration := []string{"-1s", "x", "", "1", "999999999h"}
	newFile := []string{"", dir, filepath.Join(missing, "x"), filepath.Join(file, "x")}
	oldFile := []string{"", missing, dir, file}
	names := []string{"", ",", "nonsense", "fused,nonsense"}
	bad := map[string][]string{
		"runs": positive, "threads": positive, "ops": positive, "n": positive,
		"warmup": {"-1", "x", "", "1.5", "1_0", "99999999999"}, "steps": {"-1", "x", "", "1_0", "99999999999"},
		"budget": duration, "idle": duration, "since": duration, "older": duration, "slice": append(duration, "0s"),
		"cancel": {"-0.1", "1", "NaN", "Inf", "x", ""}, "goroutines": {"0", "-1", "x", "", "1,99999999999", "2"},
		"shape":    {"", "0", "-1", "x", "1,,2", "1_0", "1.5", "99999999999", "99999,99999", "1,2,3,4,5,6,7,8,9"},
		"variants": names, "modes": names, "how": names, "kinds": names, "dtype": {"", "int8", "nonsense"}, "tier": {"", "2", "auto "},
		"device": {"", ",", "nonsense", "cpu:nonsense=1", "cpu:threads=99999"}, "format": {"", "nonsense"}, "program": {"", "nonsense"},
		"cache": {"", file}, "plans": oldFile, "bundle": {"", missing, dir}, "from": {missing, file},
		"o": newFile, "picture": append(newFile, filepath.Join(dir, "x.png")), "pkg": {"1x", "a-b", "a b"},
	}
	free := map[string]bool{"note": true, "help": true, "generate-shell-completion": true}
	operands := map[string][]string{
		"explain": {"gelu"}, "compare": {file, file}, "tables": {file}, "list": {dir}, "show": {"name"}, "export": {dir}, "gen": {file}, "verify": {dir}, "prune": {dir},
	}
	needed := map[string]map[string]string{"gen": {"o": filepath.Join(dir, "made"), "pkg": "p"}, "export": {"o": filepath.Join(dir, "plans")}}
	var walk func(c *cli.Command, path []string)
	walk = func(c *cli.Command, path []string) {
		for _, sub := range c.Commands {
			walk(sub, append(path[:len(path):len(path)], sub.Name))
		}
		for _, f := range c.Flags {
			name := f.Names()[0]
			values, ok := bad[name]
			_, isBool := f.(*cli.BoolFlag)
			if isBool {
				values, ok = []string{"x", "2"}, true
			}
			if !ok && !free[name] {
				t.Errorf("%v: no bad values of the flag -%s are known", path, name)
			}
			switch {
			case path[0] == "plans" && name == "device":
				values = []string{"nonsense"}
			case c.Name == "gen" && name == "o":
				values = []string{"", file} // a folder, which is made
			}
			for _, v := range values {
				args := append(path[:len(path):len(path)], "-"+name, v)
				if isBool {
					args = append(path[:len(path):len(path)], "-"+name+"="+v)
				}
				for other, value := range needed[c.Name] {
					if other != name {
						args = append(args, "-"+other, value)
					}
				}
				code, out, errs := fusebench(append(args, operands[c.Name]...)...)
				if code == 0 || out != "" {
					t.Errorf("fusebench %q: exit %d, %d bytes of output, %s", args, code, len(out), errs)
				} else if v != "" && !strings.Contains(errs, v) && !strings.Contains(errs, "-"+name) {
					t.Errorf("fusebench %q names neither: %s", args, errs)
				}
			}
		}
	}
	walk(newCommand(streams{}), nil)
}
