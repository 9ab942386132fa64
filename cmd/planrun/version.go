package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker when a release is built: -ldflags "-X main.release=v1.2.3".
var release string

type versionCommand struct{}

func (versionCommand) run(p *program) (int, error) {
	_, err := fmt.Fprintln(p.stdout, versionLine())
	return 0, err
}

// versionLine is the version, and what it was built with and for.
func versionLine() string {
	return fmt.Sprintf("planrun %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version is the release, the module's version where it was installed as one, or the commit it was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
