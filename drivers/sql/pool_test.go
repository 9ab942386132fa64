package sql

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// Users who share connections wait for them, and the wait is told apart.
func TestSharedConnections(t *testing.T) {
	s := postgresServer(t)
	relay := drivertest.NewRelay(t, s.Addr)
	const users, connections = 20, 5
	fields := drivertest.Fields{"dsn": postgresDSN(s, relay.Addr()), "query": "SELECT pg_sleep(0.05)"}
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: users, Connections: connections})
	var mu sync.Mutex
	var waited, opened int
	var wg sync.WaitGroup
	for range users {
		session := b.Open()
		wg.Go(func() {
			r := b.Do(t.Context(), session, long)
			mu.Lock()
			defer mu.Unlock()
			if r.Err != nil {
				t.Error(r.Err)
			}
			if r.Wait == drivers.None {
				t.Error("a call over a shared connection has no wait")
			}
			if r.Wait >= 50*time.Millisecond {
				waited++
			}
			if r.Opened {
				opened++
			}
		})
	}
	wg.Wait()
	if n := relay.Opened(); n != connections || opened != connections {
		t.Errorf("%d connections were opened, and %d calls say so, want %d", n, opened, connections)
	}
	if waited < users-connections {
		t.Errorf("%d calls waited for a connection, want at least %d", waited, users-connections)
	}
	// Without a limit there is no waiting.
	own, session := open(t, fields)
	if r := own.Must(session); r.Wait != drivers.None {
		t.Errorf("a user with a connection of its own waited %v", r.Wait)
	}
}

// A wait ends at the deadline, and with the run.
func TestWaitingEnds(t *testing.T) {
	s := postgresServer(t)
	fields := drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT pg_sleep(3)"}
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 3, Connections: 1})
	holder, waiter := b.Open(), b.Open()
	var wg sync.WaitGroup
	wg.Go(func() { b.Do(t.Context(), holder, time.Second) })
	defer wg.Wait()
	eventually(t, "the connection is in use", func() bool { return len(b.Client.(*client).shared) == 0 })
	r := b.Fails(t.Context(), waiter, 100*time.Millisecond, drivers.Timeout)
	if r.Wait < 100*time.Millisecond {
		t.Errorf("the call waited %v, its deadline was 100ms", r.Wait)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	b.Fails(ctx, waiter, long, drivers.Timeout, drivers.Aborted)
}

// An open transaction keeps its connection for the user who began it.
func TestTransactionKeepsItsConnection(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	a.exec("DROP TABLE IF EXISTS owned; CREATE TABLE owned (id int)")
	b := drivertest.NewBench(t, New(), drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"}, drivers.Pool{Users: 3, Connections: 2})
	step := func(exec string) drivers.Call {
		return prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "exec": exec})
	}
	one, two := b.Open(), b.Open()
	must(t, b, one, step("BEGIN"))
	must(t, b, two, step("BEGIN"))
	must(t, b, one, step("INSERT INTO owned VALUES (1)"))
	must(t, b, two, step("INSERT INTO owned VALUES (2)"))
	must(t, b, two, step("COMMIT"))
	must(t, b, one, step("ROLLBACK"))
	if n := a.count("SELECT sum(id) FROM owned"); n != 2 {
		t.Errorf("the table has %d, want what the second user committed", n)
	}
	// A user who leaves inside a transaction leaves none behind.
	must(t, b, one, step("BEGIN"))
	one.Close()
	if r := must(t, b, two, step("SELECT 1")); r.Wait < 0 {
		t.Error("the connection was not given back")
	}
	eventually(t, "no transaction is open", func() bool {
		return a.count("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'") == 0
	})
}
