// A server and a client of gRPC with grpc-go; `/truth.Service/Same` answers, `/truth.Service/Fail` is INTERNAL.
//
//	grpc_peer serve
//	grpc_peer call PORT GO TIMES
//
// The server prints its port. The client makes some calls of each kind over one connection, makes the file GO.ready, waits for
// the file GO, then calls TIMES times and prints the path and the code of each of these calls.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	before = 12
	limit  = time.Minute
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// method is one that answers with what it was sent, or with an error.
func method(name string, err error) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			message := new(wrapperspb.Int64Value)
			if err := decode(message); err != nil {
				return nil, err
			}
			return message, err
		},
	}
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "truth.Service",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			method("Same", nil),
			method("Fail", status.Error(codes.Internal, "as asked")),
		},
	}, nil)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	check(server.Serve(listener))
}

func one(connection *grpc.ClientConn, number int) (string, codes.Code) {
	path := "/truth.Service/Same"
	if number%2 == 1 {
		path = "/truth.Service/Fail"
	}
	err := connection.Invoke(context.Background(), path, wrapperspb.Int64(int64(number)), new(wrapperspb.Int64Value))
	return path, status.Code(err)
}

func waitFor(file string) {
	check(os.WriteFile(file+".ready", nil, 0o600))
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "nobody let it go on")
			os.Exit(1)
		}
	}
}

func call(port, file string, times int) {
	connection, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	for number := range before {
		one(connection, number)
	}
	waitFor(file)
	for number := range times {
		path, code := one(connection, number)
		fmt.Println(path, int(code))
	}
}

func main() {
	if os.Args[1] == "serve" {
		serve()
		return
	}
	times, err := strconv.Atoi(os.Args[4])
	check(err)
	call(os.Args[2], os.Args[3], times)
}
