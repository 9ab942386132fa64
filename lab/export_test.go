package lab

// Kill ends the process as the kernel does that is out of memory.
func (l *Lab) Kill() { l.command.Process.Kill() }
