// Command intervals shows how far the differences that planrun claims can be trusted: how often one is claimed where there
// is none, and how often one is found that there is.
//
//	go run ./bench/intervals            # simulated runs
//	go run ./bench/intervals -real 20   # and 20 real ones, of one server on loopback against itself
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/planrun/planrun/drivers"
	httpdriver "github.com/planrun/planrun/drivers/http"
	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

func main() {
	runs := flag.Int("runs", 2000, "simulated runs of each kind")
	seed := flag.Uint64("seed", 1, "seed of the simulation")
	measured := flag.Int("real", 0, "real runs of one server against itself")
	flag.Parse()

	fmt.Println("rounds  difference  spread  runs  claimed")
	for _, s := range []study{
		{rounds: 6, spread: 0.04}, {rounds: 10, spread: 0.04}, {rounds: 20, spread: 0.04}, {rounds: 10, spread: 0.15},
		{rounds: 6, difference: 0.10, spread: 0.04}, {rounds: 10, difference: 0.10, spread: 0.04}, {rounds: 10, difference: 0.05, spread: 0.04},
		{rounds: 10, difference: 0.20, spread: 0.15},
	} {
		share := s.claimed(*runs, *seed)
		fmt.Printf("%6d  %9.0f%%  %5.0f%%  %4d  %6.1f%% +- %.1f%%\n", s.rounds, 100*s.difference, 100*s.spread, *runs,
			100*share, 100*1.96*math.Sqrt(share*(1-share)/float64(*runs)))
	}
	if *measured > 0 {
		if err := real(*measured); err != nil {
			log.Fatal(err)
		}
	}
}

// study is a kind of run: two targets in turn, the second slower by a share, and the median of every round off by a factor
// of its own.
type study struct {
	rounds             int
	difference, spread float64
}

// samplesARound is as many as a round of a short phase has.
const samplesARound = 200

// claimed is the share of simulated runs in which the medians are said to differ. Latencies are lognormal, as those of
// most services are nearly.
func (s study) claimed(runs int, seed uint64) float64 {
	random := rand.New(rand.NewPCG(seed, uint64(s.rounds)))
	claims := 0
	for range runs {
		side := func(factor float64) compare.Side {
			rounds := make([]*record.Stats, s.rounds)
			pooled := record.NewStats(nil)
			for r := range rounds {
				rounds[r] = record.NewStats(nil)
				off := math.Exp(s.spread * random.NormFloat64())
				for range samplesARound {
					latency := int64(20e6 * factor * off * math.Exp(0.3*random.NormFloat64()))
					rounds[r].Add(r, &record.Sample{End: latency, Step: record.Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1})
				}
				pooled.Merge(rounds[r])
			}
			return compare.Measure(s.rounds, func(round int) (float64, bool) {
				from := pooled
				if round >= 0 {
					from = rounds[round]
				}
				return metric.Value(from, metric.Metric{Name: "p50"})
			})
		}
		d, _ := compare.Of(side(1), side(1+s.difference))
		if f := d.Finding(compare.Less); f == compare.Improved || f == compare.Worsened {
			claims++
		}
	}
	return float64(claims) / float64(runs)
}

const selfPlan = `
targets:
  one: {url: "%[1]s"}
  other: {url: "%[1]s"}
scenarios:
  self:
    http: GET /
    warmup: 5
    rounds: 10
    phases:
      - sequential: {count: 100}
`

// real measures one server as two targets, and prints what is claimed of their medians.
func real(runs int) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 8192)) }))
	defer server.Close()
	dir, err := os.MkdirTemp("", "intervals")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := map[string]drivers.Driver{"http": httpdriver.New()}
	p, findings := plan.Parse("self.yaml", fmt.Appendf(nil, selfPlan, server.URL), plan.Options{Drivers: all})
	if p == nil {
		return errors.New(findings[0].Message)
	}
	fmt.Println("\none server on loopback against itself, 10 rounds of 100 calls in turn")
	fmt.Println(" run  median of one  of other  difference, 95 % interval      claimed")
	claims := 0
	for n := range runs {
		p.Results.Path = filepath.Join(dir, fmt.Sprintf("%d.msgpack", n))
		report := engine.Run(context.Background(), p, engine.Options{Drivers: all, Tool: "intervals", Seed: uint64(n + 1)})
		if report.Err != nil {
			return report.Err
		}
		var sides []compare.Side
		for _, c := range report.Run.Cells {
			sides = append(sides, compare.Measure(len(c.Rounds), func(round int) (float64, bool) {
				return metric.Value(c.Stats(round, result.Judged, record.Whole), metric.Metric{Name: "p50"})
			}))
		}
		d, _ := compare.Of(sides[0], sides[1])
		claim := ""
		if f := d.Finding(compare.Less); f != compare.Same {
			claim = "yes"
			claims++
		}
		us := func(ns float64) float64 { return ns / 1e3 }
		fmt.Printf("%4d  %10.1f us  %5.1f us  %+6.1f us, %+6.1f to %+6.1f us  %s\n", n+1, us(d.Reference), us(d.Other), us(d.Absolute.Value), us(d.Absolute.Low), us(d.Absolute.High), claim)
	}
	fmt.Printf("claimed in %d of %d runs; by chance it is 1 in 20\n", claims, runs)
	return nil
}
