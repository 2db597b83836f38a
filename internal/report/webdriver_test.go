package report

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A browser is a headless Chromium, controlled by chromedriver's WebDriver protocol.
type browser struct {
	t       *testing.T
	session string // its address
}

var onPort = regexp.MustCompile(`successfully on port (\d+)`)

// start starts a browser, or skips if there is none; if MILLRACE_REQUIRE names chromium it fails
// instead.
func start(t *testing.T, dark bool, width, height int) *browser {
	t.Helper()
	var paths []string
	for _, names := range [][]string{{"chromedriver"}, {"chromium", "chromium-browser", "google-chrome"}} {
		at := slices.IndexFunc(names, func(n string) bool { _, err := exec.LookPath(n); return err == nil })
		if at < 0 {
			why := "no " + names[0] + " (Debian: chromium chromium-driver)"
			if slices.Contains(strings.Split(os.Getenv("MILLRACE_REQUIRE"), ","), "chromium") {
				t.Fatal(why)
			}
			t.Skip(why)
		}
		path, _ := exec.LookPath(names[at])
		paths = append(paths, path)
	}
	// Use neither the user's profile nor the caches. It is not t.TempDir, because Chromium may
	// still write there while it ends, which must not fail the test.
	home, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	driver := exec.Command(paths[0], "--port=0")
	driver.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TMPDIR="+home)
	says, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		driver.Process.Kill()
		driver.Wait()
	})
	b := &browser{t: t}
	said := bufio.NewScanner(says)
	for b.session == "" && said.Scan() {
		if m := onPort.FindStringSubmatch(said.Text()); m != nil {
			b.session = "http://127.0.0.1:" + m[1]
		}
	}
	if b.session == "" {
		t.Fatalf("chromedriver did not say its port: %v", said.Err())
	}
	go io.Copy(io.Discard, says)
	args := []string{"--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-prefers-reduced-motion", "--force-device-scale-factor=1",
		fmt.Sprintf("--window-size=%d,%d", width, height), "--user-data-dir=" + filepath.Join(home, "profile")}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	if dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	} else {
		args = append(args, "--blink-settings=preferredColorScheme=1")
	}
	var made struct{ SessionID string }
	b.must("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:chromeOptions": map[string]any{"binary": paths[1], "args": args}, "goog:loggingPrefs": map[string]any{"browser": "ALL"},
	}}}, &made)
	b.session += "/session/" + made.SessionID
	t.Cleanup(func() { b.ask("DELETE", "", nil, nil) }) // before the driver is stopped
	return b
}

// ask sends a command and stores the answer's value.
func (b *browser) ask(method, path string, body, value any) error {
	var send io.Reader
	if method == "POST" {
		if body == nil {
			body = struct{}{}
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, b.session+path, send)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 2 * time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, answer.Value)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, value)
}

func (b *browser) must(method, path string, body, value any) {
	b.t.Helper()
	if err := b.ask(method, path, body, value); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(file string) {
	b.t.Helper()
	b.must("POST", "/url", map[string]any{"url": "file://" + filepath.ToSlash(file)}, nil)
}

// eval runs the body of a function in the page.
func (b *browser) eval(script string, value any, args ...any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.must("POST", "/execute/sync", map[string]any{"script": script, "args": args}, value)
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(30 * time.Millisecond) {
		var ok bool
		if b.eval("return !!("+expression+")", &ok); ok {
			return
		}
		if time.Now().After(until) {
			b.t.Fatalf("never came true: %s", expression)
		}
	}
}

// find returns the WebDriver name of the element that matches a CSS selector.
func (b *browser) find(css string) map[string]string {
	b.t.Helper()
	var e map[string]string
	b.must("POST", "/element", map[string]any{"using": "css selector", "value": css}, &e)
	return e
}

// click clicks as a user does: it fails if another element covers the element.
func (b *browser) click(css string) {
	b.t.Helper()
	for _, id := range b.find(css) {
		b.must("POST", "/element/"+id+"/click", nil, nil)
	}
}

func (b *browser) press(css, keys string) {
	b.t.Helper()
	for _, id := range b.find(css) {
		b.must("POST", "/element/"+id+"/value", map[string]any{"text": keys}, nil)
	}
}

// pointer moves the mouse to places in an element, relative to its middle; with drag the button is
// held from the first to the last.
func (b *browser) pointer(css string, drag bool, places ...[2]int) {
	b.t.Helper()
	origin := b.find(css)
	var acts []any
	for i, p := range places {
		acts = append(acts, map[string]any{"type": "pointerMove", "duration": 0, "origin": origin, "x": p[0], "y": p[1]})
		if drag && i == 0 {
			acts = append(acts, map[string]any{"type": "pointerDown", "button": 0})
		}
	}
	if drag {
		acts = append(acts, map[string]any{"type": "pointerUp", "button": 0})
	}
	b.must("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "pointer", "id": "mouse", "parameters": map[string]any{"pointerType": "mouse"}, "actions": acts}}}, nil)
}

func (b *browser) wheel(css string, by int) {
	b.t.Helper()
	b.must("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "wheel", "id": "wheel", "actions": []any{
		map[string]any{"type": "scroll", "duration": 0, "origin": b.find(css), "x": 0, "y": 0, "deltaX": 0, "deltaY": by},
	}}}}, nil)
}

// complaints returns the messages of the page's console, and of the browser.
func (b *browser) complaints() []string {
	b.t.Helper()
	var list []struct{ Level, Message string }
	b.must("POST", "/se/log", map[string]any{"type": "browser"}, &list)
	var all []string
	for _, l := range list {
		all = append(all, l.Level+": "+l.Message)
	}
	return all
}

func (b *browser) screenshot() []byte {
	b.t.Helper()
	var text string
	b.must("GET", "/screenshot", nil, &text)
	png, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}
