//go:build !amd64 && !arm64

package aescbc

// supported lists the sets of this CPU.
func supported() []set { return []set{generic} }

// supportedIVs lists the sets of this CPU.
func supportedIVs() []ivSet { return []ivSet{genericIVs} }
