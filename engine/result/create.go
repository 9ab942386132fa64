package result

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Create makes the results file of a run, <dir>/<plan>-<UTC time>-<4 hex digits>.msgpack, and the directory if need be.
// The file did not exist before, however many runs start at the same moment. It returns the file and its path.
func Create(dir, plan string, start time.Time) (*os.File, string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, "", err
	}
	for range 100 {
		var random [2]byte
		rand.Read(random[:])
		name := fmt.Sprintf("%s-%s-%s.msgpack", Slug(plan), start.UTC().Format("20060102T150405Z"), hex.EncodeToString(random[:]))
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		return f, path, nil
	}
	return nil, "", fmt.Errorf("can't find a free name for the results in %s", dir)
}

// Slug makes a name fit for a file of it: lower-case ASCII letters, digits and single hyphens, 60 at most, and "plan" if
// nothing is left.
func Slug(name string) string {
	var b strings.Builder
	hyphen := false
	for _, c := range strings.ToLower(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(c)
		} else {
			hyphen = true
		}
		if b.Len() > 58 { // the next round may add two
			break
		}
	}
	if b.Len() == 0 {
		return "plan"
	}
	return b.String()
}
