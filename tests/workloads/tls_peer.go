// A TLS server and client of Go's own library.
//
//	tls_peer serve CERTIFICATE KEY
//	tls_peer call BASE CERTIFICATE h1|h2 TIMES held|at-once
//
// The server prints its port. The client prints for each request its method, path, status and how many
// bytes of body were sent and received. Held, it stops itself first until somebody lets it go on.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func answer(to http.ResponseWriter, request *http.Request) {
	_, err := io.Copy(io.Discard, request.Body)
	check(err)
	kind, last, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	number, _ := strconv.Atoi(last)
	switch kind {
	case "files":
		to.Header().Set("Content-Length", last)
		to.Write(bytes.Repeat([]byte("n"), number))
	case "status":
		to.WriteHeader(number)
		if number != 204 {
			to.Write([]byte("as asked"))
		}
	default:
		to.Write([]byte("as asked"))
	}
}

func serve(certificate, key string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	check(http.ServeTLS(listener, http.HandlerFunc(answer), certificate, key))
}

func call(base, authority, version string, times int) {
	pem, err := os.ReadFile(authority)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2:  version == "h2",
		DisableCompression: true,
	}}
	for range make([]struct{}, times) {
		for _, path := range []string{"/files/0", "/files/700", "/files/50000", "/status/204", "/status/404"} {
			one(&client, base, "GET", path, 0)
		}
		one(&client, base, "POST", "/upload", 3000)
	}
}

func one(client *http.Client, base, method, path string, size int) {
	var body io.Reader
	if size > 0 {
		body = bytes.NewReader(bytes.Repeat([]byte("b"), size))
	}
	request, err := http.NewRequest(method, base+path, body)
	check(err)
	answer, err := client.Do(request)
	check(err)
	received, err := io.Copy(io.Discard, answer.Body)
	check(err)
	answer.Body.Close()
	fmt.Println(method, path, answer.StatusCode, size, received)
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3])
		return
	}
	times, err := strconv.Atoi(os.Args[5])
	check(err)
	if os.Args[6] == "held" {
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	}
	call(os.Args[2], os.Args[3], os.Args[4], times)
}
