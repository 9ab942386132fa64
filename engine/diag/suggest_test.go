package diag

import "testing"

func TestSuggest(t *testing.T) {
	valid := []string{"duration", "rate", "status", "headers", "p95", "p99", "error_rate"}
	for _, c := range []struct{ name, want string }{
		{"durration", "duration"},
		{"statsu", "status"},
		{"Status", "status"},
		{"headres", "headers"},
		{"errorrate", "error_rate"},
		{"p59", "p95"},
		{"p98", "p95"},
		{"x", ""},
		{"", ""},
		{"banana", ""},
		{"rate", ""},
		{"ärror_rate", "error_rate"},
	} {
		if got := Suggest(c.name, valid); got != c.want {
			t.Errorf("Suggest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}
