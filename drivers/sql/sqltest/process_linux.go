package sqltest

import "syscall"

// attributes runs a process as owner, and ends it with the test's process should that die.
func attributes(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGQUIT}
}
