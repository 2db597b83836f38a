package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// consumeNested gets the nested module in a separate empty app, and builds and runs a program that
// uses it. The program's last line is its expected output.
func consumeNested(work string, env []string, program string) error {
	src, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	body, want, ok := strings.Cut(string(src), "\n// prints: ")
	if !ok {
		return fmt.Errorf("%s: no line \"// prints: …\"", program)
	}
	app := filepath.Join(work, nested)
	if err := os.Mkdir(app, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(body), 0o666); err != nil {
		return err
	}
	bin := filepath.Join(work, "bin", nested)
	for _, args := range [][]string{
		{"mod", "init", "example.com/" + nested},
		{"get", module + "/" + nested + "@" + version},
		{"mod", "tidy"},
		{"build", "-o", bin, "."},
	} {
		fmt.Println("consumer: go", strings.Join(args, " "))
		if _, err := goOutput(app, env, args...); err != nil {
			return err
		}
	}
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "GOMLX_BACKEND=millrace")
	got, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, got)
	}
	if strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
		return fmt.Errorf("%s prints\n%s\nand should print\n%s", program, got, want)
	}
	return nil
}

// installTrainer installs the program that trains with GoMLX, and runs a few steps.
func installTrainer(work string, env []string) error {
	args := []string{"install", module + "/" + trainer + "@" + version}
	fmt.Println("consumer: go", strings.Join(args, " "))
	if _, err := goOutput(work, env, args...); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(work, "bin", filepath.Base(trainer)), "-steps", "3", "-batch", "8", "-hidden", "16", "-report", "3")
	got, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", trainer, err, got)
	}
	if !strings.Contains(string(got), "losses differ") {
		return fmt.Errorf("%s does not compare losses: %s", trainer, got)
	}
	return nil
}
