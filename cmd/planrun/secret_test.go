package main

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing that planrun prints or writes has a secret in it: not the report, not the results file, not the words of a failure,
// whatever form the server or a driver gave it.
func TestSecretsStayInside(t *testing.T) {
	const token, captured, password = "tok3n-0f-N0body&co", "captured-by-login-77", "hunter2-of-the-db"
	seen := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			w.Write([]byte(`{"token": "` + captured + `"}`))
		default:
			seen = seen || r.Header.Get("Authorization") == "Bearer "+token && r.Header.Get("Session") == captured
			// The server gives back what it was sent, in all forms.
			w.WriteHeader(http.StatusTeapot)
			w.Write([]byte(token + " " + url.QueryEscape(token) + " " + base64.StdEncoding.EncodeToString([]byte("me:"+token)) + " " + captured))
		}
	}))
	defer server.Close()

	p := newPlanrun(t, "run", "plan.yaml", "-o", "markdown=report.md", "-o", "csv=report.csv", "-o", "json=report.json", "-o", "junit=report.xml", "-o", "html=report.html",
		"--set", "vars.dsn=postgres://me:"+password+"@127.0.0.1:1/db")
	p.Env = append(p.Environ(), "TOKEN="+token)
	p.write(t, "key", token+"\n")
	p.write(t, "plan.yaml", `
vars: {dsn: "none"}
secrets:
  TOKEN: {env: TOKEN}
  KEY: {file: key}
scenarios:
  call:
    steps:
      - name: login
        http: GET `+server.URL+`/login
        capture:
          session: {value: json.token, secret: true}
      - name: use
        http:
          get: `+server.URL+`/x?key=${secret.KEY}
          headers:
            Authorization: Bearer ${secret.TOKEN}
            Session: ${session}
        expect: body == "${secret.TOKEN} and ${session}"
    phases: [single]
`)
	if code := p.run(t); code != 1 {
		t.Errorf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
	}
	if !seen {
		t.Error("the server was not sent the secrets")
	}

	q := newPlanrun(t, "run", "plan.yaml")
	q.Env = append(q.Environ(), "DSN=postgres://me:"+password+"@127.0.0.1:1/db")
	q.write(t, "plan.yaml", `
before:
  - sql: {dsn: "${env.DSN}", query: SELECT 1}
scenarios:
  call:
    http: GET `+server.URL+`/login
    phases: [single]
`)
	if code := q.run(t); code != 3 {
		t.Errorf("exit %d\n%s", code, q.stderr.String())
	}

	check := func(where string, text []byte) {
		for _, secret := range []string{token, captured, password, url.QueryEscape(token), base64.StdEncoding.EncodeToString([]byte(token))[:20]} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has %q", where, secret)
			}
		}
	}
	files := 0
	for _, run := range []*planrun{p, q} {
		check("stdout", run.stdout.Bytes())
		check("stderr", run.stderr.Bytes())
		err := filepath.WalkDir(run.dir, func(path string, d os.DirEntry, err error) error {
			name := d.Name()
			if err != nil || d.IsDir() || name == "key" || name == "planrun" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			check(strings.TrimPrefix(path, run.dir), text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 8 {
		t.Errorf("only %d files were looked at", files)
	}
}
