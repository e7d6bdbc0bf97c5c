package broker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// toURL is a host and a port as clients want it.
func toURL(host string, port int) string {
	return (&url.URL{Scheme: "tls", Host: net.JoinHostPort(host, strconv.Itoa(port))}).String()
}

// isAny reports whether a host to listen on is every address of the machine.
func isAny(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// localURL is how a program on this machine reaches the server.
func localURL(host string, port int) string {
	if isAny(host) {
		host = "localhost"
	}
	return toURL(host, port)
}

// joinURLs are how machines reach the server. Addresses without a port get that of
// the server.
func joinURLs(host string, port int, advertise []string) (urls []string, err error) {
	if len(advertise) == 0 {
		advertise = []string{host}
		if isAny(host) {
			if advertise, err = ownAddresses(host); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range advertise {
		h, p := a, port
		if name, text, err := net.SplitHostPort(a); err == nil {
			if p, err = strconv.Atoi(text); err != nil {
				return nil, fmt.Errorf("address %q: want host or host:port", a)
			}
			h = name
		}
		urls = append(urls, toURL(h, p))
	}
	return urls, nil
}

// ownAddresses are those of this machine on networks, without loopback and those
// that need the name of an interface.
func ownAddresses(host string) (hosts []string, err error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		ip := prefix.Addr()
		if err != nil || !ip.IsGlobalUnicast() || host == "0.0.0.0" && !ip.Is4() {
			continue
		}
		hosts = append(hosts, ip.String())
	}
	if len(hosts) == 0 {
		return nil, errors.New("this machine has no address on a network: give the one to advertise")
	}
	return hosts, nil
}
