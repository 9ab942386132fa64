package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestEveryFormIsHidden(t *testing.T) {
	for _, value := range []string{"tok-9f8e7d6c5b", `p@ss/w"ö rd%+'`, "12345678901234567890123", strings.Repeat("k", 64)} {
		m := NewMask(value)
		encoded, err := json.Marshal(map[string]string{"token": value})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"itself":    "the token " + value + " is wrong",
			"query":     "GET /?t=" + url.QueryEscape(value),
			"path":      "GET /" + url.PathEscape(value) + "/x",
			"user":      url.UserPassword("me", value).String(),
			"json":      string(encoded),
			"quoted":    strconv.Quote(value),
			"sql":       "'" + strings.ReplaceAll(value, "'", "''") + "'",
			"base64":    base64.StdEncoding.EncodeToString([]byte(value)),
			"basic":     base64.StdEncoding.EncodeToString([]byte("me:" + value)),
			"basic+1":   base64.StdEncoding.EncodeToString([]byte("you:" + value)),
			"basic+2":   base64.StdEncoding.EncodeToString([]byte("a user:" + value)),
			"base64url": base64.RawURLEncoding.EncodeToString([]byte("x:" + value + ":y")),
		} {
			got := m.Clean(text)
			if !strings.Contains(got, Shown) || strings.Contains(got, value) {
				t.Errorf("%s: %q becomes %q", name, text, got)
			}
			// Whatever was base64 must not say a part of it either.
			for word := range strings.SplitSeq(got, Shown) {
				if b, err := base64.RawStdEncoding.DecodeString(strings.Trim(word, "= ")); err == nil && len(b) > 3 && strings.Contains(value, string(b)) {
					t.Errorf("%s: %q still says %q", name, got, b)
				}
			}
		}
	}
}

func TestPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"dsn: postgres://me:hunter2@db/shop":              "dsn: postgres://me:***@db/shop",
		"url: https://me:hunter2@api.test/x?y=1":          "url: https://me:***@api.test/x?y=1",
		"server=db;user id=sa;password=hun;database=x":    "server=db;user id=sa;password=***;database=x",
		"host=db password='hun ter2' user=me":             "host=db password=*** user=me",
		"Pwd = {a;b};":                                    "Pwd = ***;",
		"me:hunter2@tcp(db:3306)/shop":                    "me:***@tcp(db:3306)/shop",
		"postgres://me:${secret.PG}@db/shop":              "postgres://me:${secret.PG}@db/shop",
		"password=${secret.PG}":                           "password=${secret.PG}",
		"see https://example.test:8080/a@b and me@a.test": "see https://example.test:8080/a@b and me@a.test",
		"plans/x.yaml:12:7: unknown key \"durration\"":    "plans/x.yaml:12:7: unknown key \"durration\"",
	} {
		if got := Passwords(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestNoMask(t *testing.T) {
	var m *Mask
	if got := m.Clean("text"); got != "text" {
		t.Error(got)
	}
	if got := m.Without("secret-1", "a secret-1 b"); got != "a *** b" {
		t.Error(got)
	}
	if got := NewMask("", "abcd", "abcdef").Clean("abcdef abcd"); got != "*** ***" {
		t.Error(got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("tok-9f8e7d6c5b", "prefix ", " suffix")
	f.Add("a:b@c", "x://", "")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if len(value) < 4 || strings.Contains(Shown, value) || strings.Contains(value, "*") {
			return
		}
		if got := NewMask(value).Clean(before + value + after); strings.Contains(got, value) {
			t.Errorf("%q in %q", value, got)
		}
	})
}
