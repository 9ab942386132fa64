package quantity

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Value
	}{
		{"30ms", Value{30e6, Time}},
		{"1500us", Value{1.5e6, Time}},
		{"7µs", Value{7e3, Time}},
		{"7μs", Value{7e3, Time}},
		{"1.5s", Value{1.5e9, Time}},
		{"1m30s", Value{90e9, Time}},
		{"2h0m1.5s", Value{7201.5e9, Time}},
		{"34.1ms", Value{34.1e6, Time}},
		{"600/s", Value{600, Rate}},
		{"90/min", Value{1.5, Rate}},
		{"30/m", Value{0.5, Rate}},
		{"1800/h", Value{0.5, Rate}},
		{"1.5/s", Value{1.5, Rate}},
		{"8KiB", Value{8192, Size}},
		{"320KB", Value{320e3, Size}},
		{"320kB", Value{320000, Size}},
		{"1GiB", Value{1 << 30, Size}},
		{"27MB/s", Value{27e6, Speed}},
		{"60MB/min", Value{1e6, Speed}},
		{"1%", Value{0.01, Share}},
		{"99.9%", Value{0.999, Share}},
		{"0.01%", Value{0.0001, Share}},
		{"15", Value{15, Number}},
		{"0", Value{0, Number}},
		{"0.5", Value{0.5, Number}},
		{"12345678901234567890", Value{12345678901234567890, Number}},
	} {
		v, err := Parse(c.text)
		if c.want == (Value{}) && c.text != "0" {
			if err == nil {
				t.Errorf("Parse(%q) = %v, want an error", c.text, v)
			}
			continue
		}
		if err != nil || v != c.want {
			t.Errorf("Parse(%q) = %v, %v, want %v", c.text, v, err, c.want)
		}
	}
}

// A share written in decimal digits is exactly the quotient of the counts it stands for.
func TestSharesAreExact(t *testing.T) {
	for n := 1; n <= 1000; n++ {
		text := strings.TrimSuffix(strings.TrimRight(fmtTenths(n), "0"), ".") + "%"
		v, err := Parse(text)
		if err != nil || v.F != float64(n)/1000 {
			t.Fatalf("Parse(%q) = %v, %v, want exactly %v", text, v.F, err, float64(n)/1000)
		}
	}
}

func fmtTenths(n int) string {
	return Value{float64(n / 10), Number}.String() + "." + string(rune('0'+n%10))
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		dim        Dim
		text, want string
	}{
		{Time, "15", "expected a duration; write 15s or 15ms"},
		{Time, "", "expected a duration; write a number with ns, us, ms, s, m or h, such as 30ms or 1m30s"},
		{Time, "-5s", "expected a duration: -5s is negative"},
		{Time, "+5s", "expected a duration: +5s has a sign; write 5s"},
		{Time, "30 ms", "expected a duration: unexpected space in 30 ms; write 30ms without a space"},
		{Time, " 30ms", "expected a duration: unexpected space; write 30ms without a space"},
		{Time, "30M", `unknown unit "M" after 30; write 30m`},
		{Time, "10sec", `unknown unit "sec" after 10; write 10s`},
		{Time, "10 seconds", `unknown unit "seconds" after 10; write 10s`},
		{Time, "2d", `unknown unit "d" after 2; write 48h`},
		{Time, "1,5s", "expected a duration: unexpected comma in 1,5s; write 1.5s"},
		{Time, "1h30", "30 is not a duration; write the unit of 30: ns, us, ms, s or m"},
		{Time, "30s1m", "the parts of a duration go from large to small; write it as in 1h30m or 1m30s"},
		{Time, "010s", "010s is not in plain decimal digits; write 10s"},
		{Time, "1m010s", "010s is not in plain decimal digits; write 1m10s"},
		{Time, ".5s", ".5s is not in plain decimal digits; write 0.5s"},
		{Time, "5.s", `unexpected ".s" after 5`},
		{Time, "8KiB", "expected a duration, but 8KiB is a size; write a number with ns, us, ms, s, m or h, such as 30ms or 1m30s"},
		{Time, "soon", `expected a duration: "soon" is not a number; write a number with ns, us, ms, s, m or h, such as 30ms or 1m30s`},
		{Time, "5x", `unknown unit "x" after 5; write a number with ns, us, ms, s, m or h, such as 30ms or 1m30s`},
		{Size, "5Mb", `unknown unit "Mb" after 5; write 5MB or 5MiB`},
		{Size, "30M", `unknown unit "M" after 30; write 30MB or 30MiB`},
		{Size, "320Kb", `unknown unit "Kb" after 320; write 320kB or 320KiB`},
		{Size, "8192", "expected a size; write 8192B or 8KiB"},
		{Speed, "100Mbit/s", `unknown unit "Mbit" after 100; sizes are in bytes: write 12.5MB/s`},
		{Speed, "100Mbps", `unknown unit "Mbps" after 100; sizes are in bytes: write 12.5MB/s`},
		{Speed, "5Mb/s", `unknown unit "Mb" after 5; write 5MB/s or 5MiB/s`},
		{Rate, "600", "expected a rate; write 600/s or 600/min"},
		{Rate, "600/sec", "a rate is per second, minute or hour; write 600/s"},
		{Rate, "600rps", `unknown unit "rps" after 600; write 600/s`},
		{Rate, "100/10s", "expected a rate: a rate is per second, minute or hour; write 10/s"},
		{Rate, "600 /s", "expected a rate: unexpected space in 600 /s; write 600/s without a space"},
		{Share, "0.05", "expected a share; write 5%"},
		{Share, "5 %", "expected a share: unexpected space in 5 %; write 5% without a space"},
		{Share, "1%5", `unexpected "5" right after 1%; write spaces around % for the remainder of a division`},
		{Number, "010", "010 is not in plain decimal digits; write 10"},
		{Number, "1_000", "1_000 is not in plain decimal digits; write 1000"},
		{Number, "0x10", "0x10 is not in plain decimal digits; write 16"},
		{Number, "0o10", "0o10 is not in plain decimal digits; write 8"},
		{Number, "1e3", "1e3 is not in plain decimal digits; write 1000"},
		{Number, "1.5E+3", "1.5E+3 is not in plain decimal digits; write 1500"},
		{Number, "30ms", "expected a plain number, but 30ms is a duration; write a number, such as 15"},
		{Number, "NaN", `expected a plain number: "NaN" is not a number; write a number, such as 15`},
		{Number, "1e999", "1e999 is too large"},
		{Number, strings.Repeat("9", 400), "999"},
	} {
		v, err := ParseAs(c.text, c.dim)
		if err == nil {
			t.Errorf("%s %q: got %v, want an error", c.dim, c.text, v)
		} else if got := err.Error(); got != c.want && !(len(c.text) > 4 && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %q:\n got %s\nwant %s", c.dim, c.text, got, c.want)
		}
	}
}

func TestParseKinds(t *testing.T) {
	if d, err := ParseDuration("0"); d != 0 || err != nil {
		t.Error(d, err)
	}
	if d, err := ParseDuration("1m30s"); d != 90*time.Second || err != nil {
		t.Error(d, err)
	}
	for _, bad := range []string{"1000000h1ns", "0.1ns"} {
		if d, err := ParseDuration(bad); bad == "0.1ns" && err == nil {
			t.Error(bad, d)
		}
	}
	if _, err := ParseDuration("9999999h"); err == nil {
		t.Error("a duration beyond the range was accepted")
	}
	if n, err := ParseSize("1.5KiB"); n != 1536 || err != nil {
		t.Error(n, err)
	}
	if n, err := ParseSize("0.3B"); err == nil || err.Error() != "0.3B is not a whole number of bytes" {
		t.Error(n, err)
	}
	if n, err := ParseInt("9007199254740993"); n != 9007199254740993 || err != nil {
		t.Error(n, err)
	}
	if n, err := ParseInt("2.5"); err == nil || err.Error() != "expected a whole number" {
		t.Error(n, err)
	}
	if _, err := ParseInt("99999999999999999999"); err == nil {
		t.Error("a number beyond the range was accepted")
	}
	if r, err := ParseRate("6/min"); r != 0.1 || err != nil {
		t.Error(r, err)
	}
	if r, err := ParseShare("250%"); r != 2.5 || err != nil {
		t.Error(r, err)
	}
	if r, err := ParseSpeed("0"); r != 0 || err != nil {
		t.Error(r, err)
	}
	var e *Error
	if _, err := ParseSpeed("27MB"); !errors.As(err, &e) || e.Hint == "" {
		t.Error(err)
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		value Value
		want  string
	}{
		{Value{34.1e6, Time}, "34.1ms"},
		{Value{34.12345e6, Time}, "34.1ms"},
		{Value{1.238e9, Time}, "1.24s"},
		{Value{999.96e3, Time}, "1ms"},
		{Value{999.4e3, Time}, "999us"},
		{Value{850, Time}, "850ns"},
		{Value{0, Time}, "0s"},
		{Value{59.99e9, Time}, "1m"},
		{Value{90e9, Time}, "1m30s"},
		{Value{300e9, Time}, "5m"},
		{Value{100.25e9, Time}, "1m40.3s"},
		{Value{3599.99e9, Time}, "1h"},
		{Value{7199.9e9, Time}, "2h"},
		{Value{3725e9, Time}, "1h2m5s"},
		{Value{-3.2e6, Time}, "-3.2ms"},
		{Value{0.0012, Share}, "0.12%"},
		{Value{0.9985, Share}, "99.85%"},
		{Value{1, Share}, "100%"},
		{Value{0, Share}, "0%"},
		{Value{0.9999996, Share}, "99.99996%"},
		{Value{1e-7, Share}, "0.00001%"},
		{Value{-0.26, Share}, "-26%"},
		{Value{8192, Size}, "8KiB"},
		{Value{0, Size}, "0B"},
		{Value{512, Size}, "512B"},
		{Value{8000, Size}, "8kB"},
		{Value{1 << 30, Size}, "1GiB"},
		{Value{26.7123e6, Size}, "26.7MB"},
		{Value{26.7123e6, Speed}, "26.7MB/s"},
		{Value{999.99e6, Speed}, "1GB/s"},
		{Value{600, Rate}, "600/s"},
		{Value{599.83, Rate}, "599.8/s"},
		{Value{0.1, Rate}, "0.1/s"},
		{Value{1.0 / 60, Rate}, "1/min"},
		{Value{1.0 / 3600, Rate}, "1/h"},
		{Value{71819, Number}, "71819"},
		{Value{1.61, Number}, "1.61"},
		{Value{2.0 / 3, Number}, "0.6667"},
		{Value{math.NaN(), Time}, "no data"},
		{Value{math.Inf(-1), Share}, "no data"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%v of %s: got %s, want %s", c.value.F, c.value.Dim, got, c.want)
		}
	}
	if got := (Value{1.2384567e9, Time}).Text(6); got != "1.23846s" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"30ms", "1m30s", "600/s", "27MB/s", "1%", "0x1F", "1e3", "1_0", "5.", ".5", "30 ms", "100/10s", "1,5s", "7µs", "-1", "2d", "100Mbps"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err == nil {
			if math.IsNaN(v.F) || math.IsInf(v.F, 0) || v.F < 0 {
				t.Fatalf("Parse(%q) = %v", s, v.F)
			}
			again, err := Parse(v.Text(17))
			if err != nil || again.Dim != v.Dim || math.Abs(again.F-v.F) > 1e-9*v.F+1e-6 {
				t.Fatalf("Parse(%q) = %v; printed as %s and read again it is %v, %v", s, v, v.Text(17), again, err)
			}
		} else {
			var e *Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Fatalf("Parse(%q): %v", s, err)
			}
			if n := utf8.RuneCountInString(s); e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > n {
				t.Fatalf("Parse(%q): place %d+%d is not within %d runes: %v", s, e.Offset, e.Length, n, err)
			}
		}
		if startsNumber(s) {
			if _, n, _ := Scan(s); n <= 0 || n > len(s) {
				t.Fatalf("Scan(%q) has %d bytes", s, n)
			}
		}
	})
}
