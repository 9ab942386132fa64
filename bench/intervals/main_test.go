package main

import "testing"

// A difference that is none is claimed in 1 of 20 runs at most, but for sampling error, and one of 10 % with a spread of 4 %
// is found by 10 rounds in 95 of 100 runs at least.
func TestClaims(t *testing.T) {
	const runs = 2000
	// Three standard deviations of a share of 5 % in 2000 are 1.5 %.
	if share := (study{rounds: 10, spread: 0.04}).claimed(runs, 1); share < 0.035 || share > 0.065 {
		t.Errorf("a difference is claimed in %.1f %% of runs without one, want 5 %%", 100*share)
	}
	if share := (study{rounds: 10, difference: 0.10, spread: 0.04}).claimed(runs/4, 1); share < 0.95 {
		t.Errorf("a difference of 10 %% is found in %.1f %% of runs, want 95 %% at least", 100*share)
	}
}
