//go:build unix && !linux

package sqltest

import "syscall"

// attributes runs a process as owner.
func attributes(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner}
}
