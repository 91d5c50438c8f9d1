//go:build !linux

package keeper

const supported = false

// Self is the path of the program that keeps; there is none on this system.
const Self = ""

// Run is never called on this system.
func Run() int { return 1 }
