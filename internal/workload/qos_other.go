//go:build !linux && !darwin

package workload

import "dmgbench/internal/hostio"

func setThreadQoS(string) error { return hostio.ErrUnsupported }

func threadQoS() (string, error) { return "", hostio.ErrUnsupported }

func qosNote(string) string { return "" }
