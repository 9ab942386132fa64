package sql

import (
	"strings"
	"testing"
)

// Whatever a DSN is made of, reading it does not panic, and neither its faults nor its name tell the password.
func FuzzDSN(f *testing.F) {
	for _, s := range []string{"db.test/shop", "db.test:1/x?sslmode=require", "a,b", "[::1]:5/x", "%zz", "x?tls=custom", "x?password=1", "x#y", "/x?host=/run", "x?encrypt=maybe&log=z", "x?charset=a&loc=Nowhere"} {
		f.Add("postgres", "", s)
		f.Add("mysql", "/", s)
		f.Add("sqlserver", "#", s)
		f.Add("sqlite", "?", s)
	}
	f.Add("mysql", ":/", "0")
	f.Fuzz(func(t *testing.T, scheme, junk, rest string) {
		const secret = "hunter2secret"
		var d database
		flaw := d.parse(scheme+"://user:"+secret+junk+"@"+rest, "", "", false)
		if flaw != nil && strings.Contains(flaw.Error(), secret) {
			t.Errorf("the fault tells the password: %v", flaw)
		}
		if flaw == nil && d.dialect != sqlite && strings.Contains(d.name, secret) {
			t.Errorf("the name tells the password: %s", d.name)
		}
	})
}
