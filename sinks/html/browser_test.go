package html

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/sinks/sinktest"
)

// console is a line that Chromium logs for a page: what a script says, what it could not load, what a policy refused.
var console = regexp.MustCompile(`CONSOLE[:(].*`)

// own is a host that Chromium asks for its own purposes.
var own = regexp.MustCompile(`(^|\.)(google|googleapis|gstatic|gvt1|chromium)\.(com|org)(:\d+)?$`)

// browse opens a page, and returns what the console says, what was asked of the network, and the document as the browser
// understood it. All the network that there is is a proxy which answers nothing.
func browse(t *testing.T, page []byte) (said []string, document string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !own.MatchString(r.Host) {
			asked = append(asked, "asked for "+r.Method+" "+r.RequestURI)
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	path, err := browser()
	if err != nil {
		t.Fatal("chromium is missing; ./test.sh installs it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, page, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--headless", "--window-size=1280,900", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--proxy-server="+proxy.URL, "--proxy-bypass-list=<-loopback>", "--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom", "file://"+file)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, log.String())
	}
	if !strings.Contains(out.String(), "<html") {
		t.Fatalf("chromium shows nothing:\n%s", log.String())
	}
	mu.Lock()
	defer mu.Unlock()
	return append(console.FindAllString(log.String(), -1), asked...), out.String()
}

// TestBrowserIsContent opens reports in a browser: nothing may be on the console, and nothing may be asked of a network.
func TestBrowserIsContent(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	for _, c := range sinktest.Cases() {
		if c.Name != "hostile" && c.Name != "stages" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var b bytes.Buffer
			if err := New(Options{}).Write(&b, c.Open(t)); err != nil {
				t.Fatal(err)
			}
			said, document := browse(t, b.Bytes())
			if len(said) > 0 {
				t.Errorf("the console is not empty, or the network was asked:\n%s", strings.Join(said, "\n"))
			}
			for _, tag := range []string{"<script", "<img", "<iframe", "<link rel=\"stylesheet", "onerror=\""} {
				if strings.Contains(document, tag) {
					t.Errorf("the document has %s", tag)
				}
			}
			if !strings.Contains(document, "</svg>") {
				t.Error("the document has no pictures")
			}
		})
	}
	// What is looked for is found where it is.
	for name, page := range map[string]string{
		"script":  `<html><body><script>nowhere()</script></body></html>`,
		"network": `<html><body><img src="http://planrun.test/x.png"></body></html>`,
		"policy":  `<html><head><meta http-equiv="Content-Security-Policy" content="default-src 'none'"></head><body><img src="http://planrun.test/x.png"></body></html>`,
	} {
		if said, _ := browse(t, []byte(page)); len(said) == 0 {
			t.Errorf("%s: nothing is said, so the test above means nothing", name)
		}
	}
}

// TestFiguresFit measures the widest tables of figures in a window as wide as most: nothing is cut off.
func TestFiguresFit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	var b bytes.Buffer
	for _, c := range sinktest.Cases() {
		if c.Name == "inconclusive" {
			if err := New(Options{}).Write(&b, c.Open(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	const measure = `<script>for (const w of document.querySelectorAll(".wide")) document.body.append("[" + w.clientWidth + " shows " + w.scrollWidth + "]")</script></body>`
	page := strings.Replace(policy.ReplaceAllString(b.String(), ""), "</body>", measure, 1)
	_, document := browse(t, []byte(page))
	found := regexp.MustCompile(`\[(\d+) shows (\d+)\]`).FindAllStringSubmatch(document, -1)
	if len(found) < 2 {
		t.Fatalf("%d tables are measured", len(found))
	}
	for _, m := range found {
		if width, _ := strconv.Atoi(m[1]); width < 1000 || m[1] != m[2] {
			t.Errorf("a table of %s pixels stands in %s", m[2], m[1])
		}
	}
}

// browser finds Chromium, or a browser of its family.
func browser() (path string, err error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}
