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
	host, text, err := net.SplitHostPort(cmp.Or(listen, "127.0.0.1:0"))
	n, parseErr := strconv.ParseUint(text, 10, 16)
	if err != nil || parseErr != nil {
		return "", 0, fmt.Errorf("address %q: want host:port", listen)
	}
	return host, cmp.Or(int(n), last, server.RANDOM_PORT), nil
}

// joinURLs are how machines reach the server. Addresses without a port get that of
// the server. A server that listens on every address has those of its machine, and
// those to advertise are for what it cannot know, such as a name or a router.
func joinURLs(host string, port int, advertise []string) (urls []string, err error) {
	if len(advertise) == 0 {
		advertise = []string{host}
		if ip, _ := netip.ParseAddr(host); host == "" || ip.IsUnspecified() {
			advertise, err = ownAddresses(host)
		}
	}
	for _, a := range advertise {
		if _, _, err := net.SplitHostPort(a); err != nil {
			a = net.JoinHostPort(a, strconv.Itoa(port))
		}
		urls = append(urls, "tls://"+a)
	}
	return urls, err
}

// ownAddresses are those of this machine on networks, without loopback and those
// that need the name of an interface. 0.0.0.0 is every address of IPv4, and "" and ::
// are every address.
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
