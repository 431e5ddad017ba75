// A server of HTTP/2 without TLS. Prints its port. `/files/N` has N bytes, everything else is not there.
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(to http.ResponseWriter, request *http.Request) {
	number, err := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/files/"))
	if err != nil {
		to.WriteHeader(404)
		return
	}
	to.Write(bytes.Repeat([]byte("n"), number))
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Handler: http.HandlerFunc(answer), Protocols: protocols}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	check(server.Serve(listener))
}
