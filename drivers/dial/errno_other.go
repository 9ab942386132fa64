//go:build !windows

package dial

import "syscall"

var (
	noDescriptors = []syscall.Errno{syscall.EMFILE, syscall.ENFILE}
	noPorts       = []syscall.Errno{syscall.EADDRNOTAVAIL, syscall.EADDRINUSE}
	localErrors   = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.ENOBUFS, syscall.ENOMEM}
	refusedErrors = []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EACCES, syscall.EPERM}
	resetErrors   = []syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, syscall.ENOTCONN}
)
