package workload

import (
	"fmt"
	"runtime"
	"sync"
)

// Qualities of service of the threads that do file I/O, after the classes that
// macOS throttles by.
const (
	QoSDefault    = "default"
	QoSUtility    = "utility"
	QoSBackground = "background"
)

// probeQoS tries the quality of service on a thread that ends with the try.
func probeQoS(qos string) (err error) {
	if qos == QoSDefault {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		err = setThreadQoS(qos)
	})
	wg.Wait()
	if err != nil {
		return fmt.Errorf("setting quality of service %q: %w", qos, err)
	}
	return nil
}
