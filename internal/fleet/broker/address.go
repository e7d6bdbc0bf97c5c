package broker

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// parseListen splits where to listen. Without a port it is that of last time, as the
// machines have it in their join strings, and the first time a free one.
func parseListen(listen string, last int) (host string, port int, err error) {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, text, err := net.SplitHostPort(listen)
	n, parseErr := strconv.ParseUint(text, 10, 16)
	if err != nil || parseErr != nil {
		return "", 0, fmt.Errorf("address %q: want host:port", listen)
	}
	if port = cmp.Or(int(n), last); port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func toURL(host string, port int) string {
	return "tls://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// isAny reports whether a host to listen on is every address of the machine.
func isAny(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// joinURLs are how machines reach the server. Addresses without a port get that of
// the server.
func joinURLs(host string, port int, advertise []string) (urls []string, err error) {
	if len(advertise) == 0 && isAny(host) {
		if advertise, err = ownAddresses(host); err != nil {
			return nil, err
		}
	} else if len(advertise) == 0 {
		advertise = []string{host}
	}
	for _, a := range advertise {
		if _, _, err := net.SplitHostPort(a); err == nil {
			urls = append(urls, "tls://"+a)
		} else {
			urls = append(urls, toURL(a, port))
		}
	}
	return urls, nil
}

// ownAddresses are those of this machine on networks, without loopback and those
// that need the name of an interface.
func ownAddresses(host string) (hosts []string, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		prefix, _ := netip.ParsePrefix(a.String())
		if ip := prefix.Addr(); ip.IsGlobalUnicast() && (ip.Is4() || host != "0.0.0.0") {
			hosts = append(hosts, ip.String())
		}
	}
	if err == nil && len(hosts) == 0 {
		err = errors.New("this machine has no address on a network: give the one to advertise")
	}
	return hosts, err
}
