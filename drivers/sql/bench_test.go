package sql

import (
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// benchmark measures warm calls of one session.
func benchmark(b *testing.B, fields drivertest.Fields) {
	bench, session := open(b, fields)
	bench.Must(session)
	var in drivers.Input
	var out drivers.Outcome
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		in.Begin(in.Iteration+1, 1)
		in.Deadline = time.Now().Add(long)
		out.Reset()
		if err := session.Do(ctx, bench.Call, &in, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(out.BytesIn)
}

func BenchmarkPostgres(b *testing.B) {
	s := postgresServer(b)
	a := newAdmin(b, s.PostgresURL())
	a.exec("DROP TABLE IF EXISTS documents; CREATE TABLE documents AS SELECT id, repeat('x', 8192) AS payload FROM generate_series(1, 1000) id; ALTER TABLE documents ADD PRIMARY KEY (id); ANALYZE documents")
	for _, bb := range []struct {
		name     string
		prepared bool
	}{{"prepared", true}, {"unprepared", false}} {
		b.Run(bb.name, func(b *testing.B) {
			benchmark(b, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT payload FROM documents WHERE id = :id", "prepare": bb.prepared, "args": drivertest.Fields{"id": 7}})
		})
	}
}
