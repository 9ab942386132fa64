package dial

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// Winsock has numbers of its own beside those that the syscall package makes up.
var (
	noDescriptors = []syscall.Errno{syscall.EMFILE, windows.WSAEMFILE, windows.ERROR_TOO_MANY_OPEN_FILES}
	noPorts       = []syscall.Errno{syscall.EADDRNOTAVAIL, windows.WSAEADDRNOTAVAIL, windows.WSAEADDRINUSE}
	localErrors   = []syscall.Errno{
		syscall.EMFILE, windows.WSAEMFILE, windows.ERROR_TOO_MANY_OPEN_FILES,
		syscall.EADDRNOTAVAIL, windows.WSAEADDRNOTAVAIL, windows.WSAEADDRINUSE,
		syscall.ENOBUFS, windows.WSAENOBUFS, windows.ERROR_NOT_ENOUGH_MEMORY,
	}
	refusedErrors = []syscall.Errno{
		syscall.ECONNREFUSED, windows.WSAECONNREFUSED, windows.WSAEHOSTUNREACH, windows.WSAENETUNREACH,
		windows.WSAEHOSTDOWN, windows.WSAEACCES,
	}
	resetErrors = []syscall.Errno{
		syscall.ECONNRESET, windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.WSAESHUTDOWN, windows.WSAENOTCONN,
		windows.WSAENETRESET, syscall.EPIPE, windows.ERROR_BROKEN_PIPE, windows.ERROR_NETNAME_DELETED,
	}
)
