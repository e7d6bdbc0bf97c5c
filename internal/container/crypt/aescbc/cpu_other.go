//go:build !amd64 && !arm64

package aescbc

func supported() []set { return []set{generic} }

func supportedIVs() []ivSet { return []ivSet{genericIVs} }
