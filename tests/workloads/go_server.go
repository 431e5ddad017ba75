// An HTTP server that burns CPU in its handler, and a client in the same process that keeps it
// busy until the process is ended.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

type handler struct{ seed uint64 }

//go:noinline
func (h *handler) burn(rounds int) uint64 {
	state := h.seed
	for i := 0; i < rounds; i++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, h.burn(2000000))
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go http.Serve(listener, &handler{seed: 1})
	url := "http://" + listener.Addr().String() + "/"
	for {
		answer, err := http.Get(url)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}
