// A Go server that has next to nothing to do, and waits for signals.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
		}
	}()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Close()
		}
	}()
	fmt.Println("listening on", listener.Addr())
	for range time.Tick(50 * time.Millisecond) {
		// Work for more than one thread.
		done := make(chan bool)
		for i := 0; i < 4; i++ {
			go func() { done <- true }()
		}
		for i := 0; i < 4; i++ {
			<-done
		}
	}
}
