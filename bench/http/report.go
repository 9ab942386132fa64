package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// closedReport prints what a request cost each tool.
func closedReport(o options, tools []tool, results [][]result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "tool\trequests/s\tCPU us/request\trange\t%s / tool\trange\t\n", tools[0].name)
	for i, t := range tools {
		rps := over(results[i], func(r result) float64 { return float64(r.requests) / o.duration.Seconds() })
		cpu := over(results[i], result.perRequest)
		ratio := ratios(results[0], results[i], result.perRequest)
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f..%.2f\t%.2f\t%.2f..%.2f\t\n", t.name, rps.median, cpu.median, cpu.low, cpu.high, ratio.median, ratio.low, ratio.high)
	}
	w.Flush()
	fmt.Println()
}

// openReport prints how late each tool was.
func openReport(o options, tools []tool, results [][]result) {
	p50 := func(r result) float64 { return r.late.p50.Seconds() * 1e3 }
	p99 := func(r result) float64 { return r.late.p99.Seconds() * 1e3 }
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "tool\trequests of %.0f\tlate p50 ms\trange\t%s / tool\tlate p99 ms\trange\t%s / tool\tCPU us/request\t\n",
		float64(o.rate)*o.duration.Seconds(), tools[0].name, tools[0].name)
	for i, t := range tools {
		n := over(results[i], func(r result) float64 { return float64(r.requests) })
		half, most := over(results[i], p50), over(results[i], p99)
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%.3f..%.3f\t%.2f\t%.3f\t%.3f..%.3f\t%.2f\t%.0f\t\n", t.name, n.median,
			half.median, half.low, half.high, ratios(results[0], results[i], p50).median,
			most.median, most.low, most.high, ratios(results[0], results[i], p99).median,
			over(results[i], result.perRequest).median)
	}
	w.Flush()
	fmt.Println()
}

// over is the spread of a figure over rounds.
func over(rounds []result, figure func(result) float64) spread {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = figure(r)
	}
	return spreadOf(values)
}

// ratios is the spread of the quotient of a figure within each round.
func ratios(a, b []result, figure func(result) float64) spread {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = figure(a[i]) / figure(b[i])
	}
	return spreadOf(values)
}
