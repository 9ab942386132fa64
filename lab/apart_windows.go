package lab

import "syscall"

// apart keeps the terminal's interrupt from the process, by a process group of its own.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
