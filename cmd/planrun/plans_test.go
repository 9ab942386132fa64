package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/planrun/planrun/drivers/sql/sqltest"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// examples are the plans of the project, and how they are run here: smaller where they would take long.
var examples = map[string][]string{
	"hybrid.yaml":           {"--set", "vars.file_size=2MiB", "--set", "vars.rounds=3"},
	"cold_connections.yaml": nil,
	"shop.yaml":             nil,
	"transfer.yaml":         nil,
	"busy.yaml":             nil,
	"sizes.yaml":            nil,
	"environments.yaml":     {"--env", "prod"},
	"capacity.yaml":         {"--only", "http", "--set", "vars.hold=1500ms"},
	"server_to_server.yaml": {"--set", "vars.ramp=200ms", "--set", "vars.hold=1s", "--set", "vars.beyond=1s"},
}

func TestExamplePlansRun(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no plans", err)
	}
	for _, file := range files {
		flags, ok := examples[filepath.Base(file)]
		if !ok {
			t.Errorf("%s is not run by any test", file)
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlanrun(t, append([]string{"--quiet", path}, flags...)...)
			p.Env = append(p.Environ(), "API_KEY=a-key-of-nobody")
			if code := p.runCalmly(t); code != 0 {
				t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
			}
			switch filepath.Base(file) {
			case "hybrid.yaml":
				relayedIsSlower(t, p.results())
			case "cold_connections.yaml":
				connectionsAreCounted(t, p.results())
			case "capacity.yaml":
				capacityIsFound(t, p.results())
			case "server_to_server.yaml":
				nodeWorks(t, p.results())
			}
		})
	}
}

func value(t *testing.T, run *result.Run, scenario, phase, target string, m metric.Metric) float64 {
	t.Helper()
	c := run.Find(scenario, phase, target)
	if c == nil {
		t.Fatalf("no cell %s.%s.%s", scenario, phase, target)
	}
	v, ok := metric.Value(c.Stats(result.Pooled, result.Judged, record.Whole), m)
	if !ok {
		t.Fatalf("%s.%s.%s has no %s", scenario, phase, target, m.Name)
	}
	return v
}

// relayedIsSlower checks every row of the study's table by the medians.
func relayedIsSlower(t *testing.T, path string) {
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p50 := metric.Metric{Name: "p", Percentile: 50}
	rows := 0
	for _, c := range run.Cells {
		if c.Target != "direct" {
			continue
		}
		rows++
		direct := value(t, run, c.Scenario, c.Phase, "direct", p50)
		hybrid := value(t, run, c.Scenario, c.Phase, "hybrid", p50)
		if hybrid <= direct {
			t.Errorf("%s.%s takes %v direct and %v by the relay", c.Scenario, c.Phase, direct, hybrid)
		}
	}
	if rows != 7 {
		t.Errorf("%d rows, want the study's 7", rows)
	}
}

func connectionsAreCounted(t *testing.T, path string) {
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	opened := metric.Metric{Name: "opened"}
	for scenario, want := range map[string]float64{"http1": 150, "http2": 3} {
		if got := value(t, run, scenario, "parallel", "hybrid", opened); got != want {
			t.Errorf("%s opened %v connections in three rounds, want %v", scenario, got, want)
		}
	}
}

// capacityIsFound checks what the search for capacity came to: the node's slots carry 100/s.
func capacityIsFound(t *testing.T, path string) {
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range run.Cells {
		if held, ok := c.RateHeld(result.Pooled); !ok || held < 60 || held > 150 {
			t.Errorf("%s holds %.1f/s (found: %v), where the node carries 100/s", c.Target, held, ok)
		}
	}
}

// nodeWorks checks that each answer took the node's work, and by which connections users came.
func nodeWorks(t *testing.T, path string) {
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Cells) != 10 {
		t.Errorf("%d cells, want 4 rates by the main API and one of the node, for 2 targets", len(run.Cells))
	}
	for _, c := range run.Cells {
		if got := time.Duration(value(t, run, c.Scenario, c.Phase, c.Target, metric.Metric{Name: "min"})); got < 100*time.Millisecond {
			t.Errorf("%s.%s.%s has an answer after %v, sooner than the node has one", c.Scenario, c.Phase, c.Target, got)
		}
	}
	connections := func(target string) int64 {
		return run.Find("node", "at_600", target).Stats(result.Pooled, result.Every, record.Whole).Opened
	}
	if http, grpc := connections("http"), connections("grpc"); grpc != 1 || http <= grpc {
		t.Errorf("users of the node opened %d connections over HTTP/1.1 and %d over gRPC", http, grpc)
	}
}

// A node with fewer slots carries less, and the gate says so.
func TestServerToServerNeedsItsSlots(t *testing.T) {
	path, err := filepath.Abs("../../plans/server_to_server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlanrun(t, "--quiet", path, "--only", "main.at_800", "--set", "vars.slots=20", "--set", "vars.ramp=200ms", "--set", "vars.hold=1s")
	if code := p.run(t); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, p.stderr.String())
	}
	contains(t, p.stdout.String(), "failed       main.at_800.", ": at_800.within(1s) >= 99%\n")
	run, err := result.Open(p.results())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"http", "grpc"} {
		if got := value(t, run, "main", "at_800", target, metric.Metric{Name: "within", Within: time.Second}); got >= 0.99 {
			t.Errorf("by %s, 5 slots of 110 ms answer %.1f%% of 200 calls a second within a second", target, 100*got)
		}
	}
}

// The study's plan runs against real systems when the environment names them, and starts no lab then.
func TestHybridPlanAgainstRealSystems(t *testing.T) {
	var served atomic.Int64
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		n, err := strconv.Atoi(r.URL.Query().Get("bytes"))
		if err != nil {
			n = 1 << 20
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Write([]byte(strings.Repeat("x", n)))
	}))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	api.Config.Protocols = &protocols
	api.Start()
	defer api.Close()

	server := sqltest.StartPostgres(t, sqltest.Options{})
	dsn := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", server.User, server.Password, server.Addr, server.Database)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE documents AS SELECT id, repeat('y', 8192) AS payload FROM generate_series(1, 1000) AS id`); err != nil {
		t.Fatal(err)
	}

	path, err := filepath.Abs("../../plans/hybrid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"DIRECT_API=" + api.URL, "HYBRID_API=" + api.URL, "DIRECT_DB=" + dsn, "HYBRID_DB=" + dsn}
	// The difference between two routes to the same server is noise, which the study's own gates allow.
	p := newPlanrun(t, "--quiet", "--no-lab", path)
	p.Env = append(p.Environ(), env...)
	if code := p.run(t); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
	}
	if served.Load() == 0 {
		t.Error("the API was not called")
	}
	run, err := result.Open(p.results())
	if err != nil {
		t.Fatal(err)
	}
	if n := value(t, run, "sql", "parallel", "hybrid", metric.Metric{Name: "bytes_in"}); n != 50*8192 {
		t.Errorf("50 queries brought %v bytes, want 8192 each", n)
	}
	for _, target := range run.Targets {
		if target.Lab {
			t.Errorf("target %s is called the lab", target.Name)
		}
	}

	for i := range env {
		p := newPlanrun(t, "--quiet", path)
		p.Env = append(p.Environ(), env[i])
		if code := p.run(t); code != 2 {
			t.Errorf("with only %s set: exit %d, want 2\n%s", strings.SplitN(env[i], "=", 2)[0], code, p.stderr.String())
		}
		contains(t, p.stderr.String(), "would compare the lab with real systems")
	}
}
