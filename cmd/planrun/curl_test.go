package main

import (
	"strings"
	"testing"

	"github.com/planrun/planrun/engine/plan"
)

func TestCurlBecomesAPlan(t *testing.T) {
	for _, test := range []struct {
		command string
		has     []string
		not     []string
	}{
		{`curl https://api.test/users?page=2`, []string{"url: \"https://api.test\"", "get: /users?page=2", "  users:"}, nil},
		{`curl -sS -X POST 'https://api.test/v1/orders' -H 'Authorization: Bearer abc.def' -H "Content-Type: application/json" -d '{"id": 17, "note": "a ${x}"}'`,
			[]string{"post: /v1/orders", `Authorization: "Bearer ${secret.AUTHORIZATION}"`, "AUTHORIZATION: {env: AUTHORIZATION}", `\"id\": 17`, "$${x}"}, []string{"abc.def"}},
		{"curl https://api.test \\\n  -u me:hunter2 \\\n  -k -L --compressed --http2 -m 5", []string{"toBase64(secret.API_USER)", "insecure: true", "redirects: 50", "compression: true", "version: 2", "timeout: 5s", `url: "https://api.test"`}, []string{"hunter2"}},
		{`curl https://api.test/p95 --data-urlencode "q=a b" -G`, []string{`get: "/p95?q=a+b"`, "  call:"}, []string{"body:"}},
		{`curl https://api.test/login -d user=me -d password=hunter2`, []string{"user=me&password=${secret.PASSWORD}", "application/x-www-form-urlencoded"}, []string{"hunter2"}},
		{`curl https://me:hunter2@api.test/x -H 'X-Api-Key: k1' -H 'X-Other: k2' -H 'Cookie: s=k3'`, []string{"secret.X_API_KEY", "k2", "secret.COOKIE"}, []string{"hunter2", "k1", "k3"}},
		{`curl --json '{"token": "k4"}' https://api.test/?access_token=k5 -X PURGE`, []string{`url: "PURGE /?access_token=${secret.ACCESS_TOKEN}"`, "application/json", "secret.TOKEN"}, []string{"k4", "k5"}},
		{`curl $'https://api.test/a\'b'`, []string{"/a'b"}, nil},
	} {
		words, err := shellWords(test.command)
		if err != nil {
			t.Errorf("%s: %v", test.command, err)
			continue
		}
		call, err := parseCurl(words)
		if err != nil {
			t.Errorf("%s: %v", test.command, err)
			continue
		}
		text := string(call.plan())
		for _, want := range test.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", test.command, want, text)
			}
		}
		for _, no := range test.not {
			if strings.Contains(text, no) {
				t.Errorf("%s: %q in\n%s", test.command, no, text)
			}
		}
		if p, found := plan.Parse("plan.yaml", []byte(text), plan.Options{Drivers: allDrivers(), Sinks: sinkKinds(), Offline: true}); p == nil || len(found) > 0 {
			t.Errorf("%s: %v\n%s", test.command, found, text)
		}
	}
}

func TestCurlThatIsNotUnderstood(t *testing.T) {
	for command, want := range map[string]string{
		`curl`:                               "the command has no URL",
		`curl https://a.test https://b.test`: "the command has two URLs, and a plan calls one in each step: https://a.test and https://b.test",
		`curl --proxy x https://a.test`:      "option --proxy of curl is not understood; leave it out",
		`curl -Z https://a.test`:             "option -Z of curl is not understood; leave it out",
		`curl https://a.test -H`:             "option -H of curl needs a value",
		`curl https://a.test -H x`:           `the header "x" has no colon`,
		`curl https://a.test -m soon`:        "--max-time soon is not a number of seconds",
		`curl 'https://a.test`:               "a quote in the command is not closed",
		`curl "https://a.test`:               "a quote in the command is not closed",
		`curl https://a.test -d @/no/file`:   "the file /no/file can't be read",
	} {
		words, err := shellWords(command)
		if err == nil {
			_, err = parseCurl(words)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
}

func FuzzCurl(f *testing.F) {
	f.Add(`curl -X POST 'https://api.test/v1' -H 'A: b' -d '{"id": 1}'`)
	f.Add("curl $'a\\n' \\\n -u x:y")
	f.Fuzz(func(t *testing.T, command string) {
		words, err := shellWords(command)
		if err != nil || strings.Contains(command, "@") {
			return
		}
		if call, err := parseCurl(words); err == nil {
			call.plan()
		}
	})
}
