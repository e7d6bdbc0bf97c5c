// Package broker is the embedded server of a fleet.
package broker

import "github.com/nats-io/nats-server/v2/server"

// Version is that of the embedded server.
const Version = server.VERSION
