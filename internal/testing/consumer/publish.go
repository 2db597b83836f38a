package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxZip is the go command's limit for a module's unpacked size.
const maxZip = 500 << 20

// moduleFiles lists the files of the module at root, slash-separated: the files that git would
// commit, or every file without git. It skips vendor folders, nested modules and irregular files,
// as the format of module zips requires (https://go.dev/ref/mod#zip-files).
func moduleFiles(root string) ([]string, error) {
	candidates, err := gitFiles(root)
	if err != nil {
		candidates, err = walkFiles(root)
	}
	if err != nil {
		return nil, err
	}
	var files []string
	lower := map[string]string{}
	for _, f := range candidates {
		if excluded(root, f) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, f))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if other, dup := lower[strings.ToLower(f)]; dup {
			return nil, fmt.Errorf("%s and %s differ in case only: no module zip can hold both", other, f)
		}
		lower[strings.ToLower(f)] = f
		if strings.ContainsAny(f, `"'*<>?|:\`+"`") {
			return nil, fmt.Errorf("%s: a name that no module zip can hold", f)
		}
		files = append(files, f)
	}
	slices.Sort(files)
	return files, nil
}

func gitFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}

func walkFiles(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	return files, err
}

// excluded reports whether a file belongs to a vendor folder or a nested module.
func excluded(root, file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == "vendor" {
			return true
		}
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// publish writes the files a module proxy serves for one version of the module
// with its go.mod at root.
func publish(proxy, module, root string, files []string) error {
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", version, time.Now().UTC().Format(time.RFC3339))
	for name, data := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(info), version + ".mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(writeZip(out, module, root, files), out.Close())
}

func writeZip(w io.Writer, module, root string, files []string) error {
	z := zip.NewWriter(w)
	var total int64
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if total += int64(len(data)); total > maxZip {
			return fmt.Errorf("the module is larger than the go command accepts (%d MB)", maxZip>>20)
		}
		f, err := z.Create(module + "@" + version + "/" + name)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}
