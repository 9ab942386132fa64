//go:build unix

package lab

import "syscall"

// apart keeps the terminal's interrupt from the process, by a process group of its own. It is not tied to the thread that
// starts it (Pdeathsig on Linux): that would end it with the thread, which the runtime may retire at any time.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
