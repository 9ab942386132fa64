package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/planrun/planrun/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = `{"services":[{"name":"api","kind":"http"}],"routes":[{"name":"direct"},{"name":"hybrid","relay":{}}]}` + "\n"

func TestServe(t *testing.T) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(t.Context(), in, out)
		out.Close()
	}()
	answers := bufio.NewReader(hear)
	answer := func(into any) {
		t.Helper()
		line, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, into); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(say, small)
	var ready lab.Ready
	answer(&ready)
	if ready.Error != "" || ready.CA != nil || len(ready.Addresses) != 2 {
		t.Fatalf("%+v", ready)
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	resp, err := client.Get(ready.Addresses["hybrid"]["api"])
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	client.CloseIdleConnections()

	io.WriteString(say, `"counts"`+"\n")
	var counts lab.Counts
	answer(&counts)
	if counts.Routes["hybrid"]["api"] != (lab.RouteCounts{Connections: 1, Rendezvous: 1}) ||
		counts.Routes["direct"]["api"] != (lab.RouteCounts{}) ||
		counts.Services["api"] != (lab.ServiceCounts{Connections: 1, Requests: 1}) {
		t.Errorf("%+v", counts)
	}

	say.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(ready.Addresses["direct"]["api"], "http://")); err == nil {
		t.Error("still there")
	}
}

func TestServeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		in, want string
		told     bool // whoever started it, by the answer
	}{
		"nothing":   {"", "expected a description", false},
		"no JSON":   {"hello\n", "not understood", true},
		"no sense":  {`{"services":[{"name":"x","kind":"ftp"}]}` + "\n", `unknown kind "ftp"`, true},
		"a request": {small + "\"dance\"\n", "unknown request", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Serve(t.Context(), strings.NewReader(test.in), &out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			var ready lab.Ready
			json.Unmarshal(out.Bytes(), &ready)
			if strings.Contains(ready.Error, test.want) != test.told {
				t.Errorf("told %q", ready.Error)
			}
		})
	}
}

func TestServeStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, say := io.Pipe()
	defer say.Close()
	hear, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, in, out) }()
	go io.WriteString(say, small)
	if _, err := bufio.NewReader(hear).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
