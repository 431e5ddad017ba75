// Uses TCP sockets in every way that this file knows, each way on a port of its own, and says what it
// did beside what the sockets say.
//
// Usage: sockets. Writes "ready", waits for SIGUSR1, does everything in a network namespace of its
// own, and writes one line per case: name, port, then for client and server the written calls and
// bytes, the read calls and bytes (MSG_PEEK aside), and of TCP_INFO the bytes sent for the first time,
// the bytes received, the segments sent again. Calls are -1 where the kernel chooses their number.
// Ends with "done" and waits for the signal once more.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, \
				#what, strerror(errno));                       \
			exit(1);                                               \
		}                                                              \
	} while (0)

struct end {
	int fd;
	long write_calls, written, read_calls, read;
};

struct pair {
	int listener;
	unsigned port;
	struct end client, server;
};

static char bytes[1 << 20];

static void wrote(struct end *end, long result)
{
	CHECK(result > 0);
	if (end->write_calls >= 0)
		end->write_calls++;
	end->written += result;
}

static void took(struct end *end, long result)
{
	CHECK(result > 0);
	if (end->read_calls >= 0)
		end->read_calls++;
	end->read += result;
}

static int listening(int family, unsigned *port)
{
	int fd = socket(family, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	struct sockaddr_storage address = {.ss_family = family};
	socklen_t length = sizeof address;
	if (family == AF_INET)
		((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	// With IPv6 the unspecified address, which takes mapped ones as well.
	CHECK(bind(fd, (void *)&address, length) == 0 && listen(fd, 64) == 0);
	CHECK(getsockname(fd, (void *)&address, &length) == 0);
	*port = ntohs(((struct sockaddr_in *)&address)->sin_port);
	return fd;
}

static struct sockaddr_in loopback(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static void join_ends(struct pair *pair)
{
	struct sockaddr_in address = loopback(pair->port);
	pair->client.fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(pair->client.fd, (void *)&address, sizeof address) == 0);
	pair->server.fd = accept(pair->listener, NULL, NULL);
	CHECK(pair->server.fd >= 0);
}

static struct tcp_info information(int fd)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof info;
	CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
	return info;
}

// Waits until everything that was written has been acknowledged.
static void settle(int fd)
{
	for (;;) {
		struct tcp_info info = information(fd);
		if (info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0)
			return;
		poll(NULL, 0, 1);
	}
}

static void tell(const char *name, unsigned port, struct end *client, struct end *server)
{
	printf("%s %u", name, port);
	struct end *ends[] = {client, server};
	for (int i = 0; i < 2; i++)
		settle(ends[i]->fd);
	for (int i = 0; i < 2; i++) {
		struct tcp_info info = information(ends[i]->fd);
		printf(" %ld %ld %ld %ld %llu %llu %u", ends[i]->write_calls, ends[i]->written,
		       ends[i]->read_calls, ends[i]->read,
		       info.tcpi_bytes_sent - info.tcpi_bytes_retrans, info.tcpi_bytes_received,
		       info.tcpi_total_retrans);
	}
	printf("\n");
}

static void read_write(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 100));
	took(&p->server, read(p->server.fd, bytes, 1000));
}

static void vectors(struct pair *p)
{
	struct iovec parts[3] = {{bytes, 10}, {bytes, 20}, {bytes, 30}};
	wrote(&p->client, writev(p->client.fd, parts, 3));
	took(&p->server, readv(p->server.fd, parts, 2));
	took(&p->server, readv(p->server.fd, parts, 3));
}

static void send_receive(struct pair *p)
{
	wrote(&p->client, send(p->client.fd, bytes, 111, MSG_NOSIGNAL));
	took(&p->server, recv(p->server.fd, bytes, 1000, 0));
	wrote(&p->server, sendto(p->server.fd, bytes, 33, 0, NULL, 0));
	took(&p->client, recvfrom(p->client.fd, bytes, 1000, 0, NULL, NULL));
}

static void messages(struct pair *p)
{
	struct iovec parts[2] = {{bytes, 40}, {bytes, 2}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	wrote(&p->client, sendmsg(p->client.fd, &message, 0));
	took(&p->server, recvmsg(p->server.fd, &message, 0));
}

// Each message is one write or read.
static void many_messages(struct pair *p)
{
	struct iovec parts[3] = {{bytes, 40}, {bytes, 50}, {bytes, 60}};
	struct mmsghdr many[3] = {0};
	for (int i = 0; i < 3; i++)
		many[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
	CHECK(sendmmsg(p->client.fd, many, 3, 0) == 3);
	for (int i = 0; i < 3; i++)
		wrote(&p->client, many[i].msg_len);
	settle(p->client.fd);
	CHECK(recvmmsg(p->server.fd, many, 3, 0, NULL) == 3);
	for (int i = 0; i < 3; i++)
		took(&p->server, many[i].msg_len);
}

static void send_file(struct pair *p)
{
	int file = memfd_create("sockets", 0);
	CHECK(file >= 0 && write(file, bytes, 300000) == 300000);
	off_t offset = 0;
	p->client.write_calls = p->server.read_calls = -1;
	while (offset < 300000) {
		wrote(&p->client, sendfile(p->client.fd, file, &offset, 300000 - offset));
		while (p->server.read < offset)
			took(&p->server, read(p->server.fd, bytes, sizeof bytes));
	}
	close(file);
}

static void splice_to_socket(struct pair *p)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0 && write(pipes[1], bytes, 5000) == 5000);
	p->client.write_calls = p->server.read_calls = -1;
	while (p->client.written < 5000)
		wrote(&p->client, splice(pipes[0], NULL, p->client.fd, NULL, 5000, 0));
	while (p->server.read < 5000)
		took(&p->server, read(p->server.fd, bytes, sizeof bytes));
	close(pipes[0]);
	close(pipes[1]);
}

// What splice reads is no read: only the socket's own account has it.
static void splice_from_socket(struct pair *p)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	wrote(&p->client, write(p->client.fd, bytes, 4000));
	long spliced = 0;
	while (spliced < 4000) {
		long more = splice(p->server.fd, NULL, pipes[1], NULL, 4000, 0);
		CHECK(more > 0);
		spliced += more;
	}
	close(pipes[0]);
	close(pipes[1]);
}

static void peek(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 50));
	CHECK(recv(p->server.fd, bytes, 20, MSG_PEEK) == 20);
	CHECK(recv(p->server.fd, bytes, 100, MSG_PEEK | MSG_TRUNC) == 50);
	took(&p->server, read(p->server.fd, bytes, 100));
}

// Reads without looking at what is read.
static void truncate_stream(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 70));
	took(&p->server, recv(p->server.fd, NULL, 30, MSG_TRUNC));
	took(&p->server, recv(p->server.fd, bytes, 100, 0));
}

static void wait_all(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 70));
	wrote(&p->client, write(p->client.fd, bytes, 30));
	took(&p->server, recv(p->server.fd, bytes, 100, MSG_WAITALL));
}

static void zero_copy(struct pair *p)
{
	int one = 1;
	CHECK(setsockopt(p->client.fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0);
	wrote(&p->client, send(p->client.fd, bytes, 20000, MSG_ZEROCOPY));
	p->server.read_calls = -1;
	while (p->server.read < 20000)
		took(&p->server, read(p->server.fd, bytes, sizeof bytes));
	// The notice that the memory is free again is neither written nor read.
	struct pollfd notice = {.fd = p->client.fd};
	CHECK(poll(&notice, 1, 10000) == 1);
	char control[100];
	struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
	CHECK(recvmsg(p->client.fd, &message, MSG_ERRQUEUE) == 0);
}

static void urgent(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 10));
	wrote(&p->client, send(p->client.fd, bytes, 1, MSG_OOB));
	settle(p->client.fd);
	took(&p->server, recv(p->server.fd, bytes, 1, MSG_OOB));
	took(&p->server, read(p->server.fd, bytes, 100));
}

static void half_close(struct pair *p)
{
	wrote(&p->client, write(p->client.fd, bytes, 12));
	CHECK(shutdown(p->client.fd, SHUT_WR) == 0);
	took(&p->server, read(p->server.fd, bytes, 100));
	CHECK(read(p->server.fd, bytes, 100) == 0);
	for (int i = 0; i < 3; i++) {
		wrote(&p->server, write(p->server.fd, bytes, 1000));
		took(&p->client, recv(p->client.fd, bytes, 1000, MSG_WAITALL));
	}
}

#define THREADS 8
#define WRITES 500

static void *write_often(void *end)
{
	long fd = ((struct end *)end)->fd;
	char part[17] = {0};
	for (int i = 0; i < WRITES; i++)
		CHECK(write(fd, part, sizeof part) == sizeof part);
	return NULL;
}

static void threads(struct pair *p)
{
	pthread_t running[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&running[i], NULL, write_often, &p->client) == 0);
	p->server.read_calls = -1;
	while (p->server.read < 17 * THREADS * WRITES)
		took(&p->server, read(p->server.fd, bytes, sizeof bytes));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(running[i], NULL) == 0);
	p->client.write_calls = THREADS * WRITES;
	p->client.written = 17 * THREADS * WRITES;
}

// The smallest use of an io_uring: one request at a time.
struct ring {
	int fd;
	char *submit, *complete;
	struct io_uring_sqe *entries;
	struct io_uring_params facts;
};

static struct ring ring_of(void)
{
	struct ring ring = {0};
	ring.fd = syscall(SYS_io_uring_setup, 4, &ring.facts);
	CHECK(ring.fd >= 0);
	struct io_uring_params *facts = &ring.facts;
	size_t submit = facts->sq_off.array + facts->sq_entries * 4;
	size_t complete = facts->cq_off.cqes + facts->cq_entries * sizeof(struct io_uring_cqe);
	int access = PROT_READ | PROT_WRITE;
	ring.submit = mmap(NULL, submit, access, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.complete = mmap(NULL, complete, access, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
	ring.entries = mmap(NULL, facts->sq_entries * sizeof(struct io_uring_sqe), access,
			    MAP_SHARED, ring.fd, IORING_OFF_SQES);
	CHECK(ring.submit != MAP_FAILED && ring.complete != MAP_FAILED);
	CHECK(ring.entries != MAP_FAILED);
	return ring;
}

static long answer(struct ring *ring)
{
	unsigned *head = (void *)(ring->complete + ring->facts.cq_off.head);
	unsigned *tail = (void *)(ring->complete + ring->facts.cq_off.tail);
	unsigned mask = *(unsigned *)(ring->complete + ring->facts.cq_off.ring_mask);
	struct io_uring_cqe *all = (void *)(ring->complete + ring->facts.cq_off.cqes), found;
	do {
		if (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
			CHECK(syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS,
				      NULL, 0) == 0);
		found = all[*head & mask];
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
		// A notice says that memory is free again.
	} while (found.flags & IORING_CQE_F_NOTIF);
	return found.res;
}

static long request(struct ring *ring, int operation, int flags, int fd, size_t length)
{
	unsigned *tail = (void *)(ring->submit + ring->facts.sq_off.tail);
	unsigned mask = *(unsigned *)(ring->submit + ring->facts.sq_off.ring_mask);
	unsigned *order = (void *)(ring->submit + ring->facts.sq_off.array);
	unsigned slot = *tail & mask;
	ring->entries[slot] = (struct io_uring_sqe){.opcode = operation, .flags = flags, .fd = fd,
						    .addr = (uintptr_t)bytes, .len = length};
	order[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	return answer(ring);
}

static void uring(struct pair *p)
{
	struct ring ring = ring_of();
	wrote(&p->client, request(&ring, IORING_OP_SEND, 0, p->client.fd, 123));
	took(&p->server, request(&ring, IORING_OP_RECV, 0, p->server.fd, 1000));
	// By a thread of the kernel's.
	wrote(&p->client, request(&ring, IORING_OP_SEND, IOSQE_ASYNC, p->client.fd, 77));
	took(&p->server, request(&ring, IORING_OP_RECV, IOSQE_ASYNC, p->server.fd, 1000));
	close(ring.fd);
}

static void uring_zero_copy(struct pair *p)
{
	struct ring ring = ring_of();
	wrote(&p->client, request(&ring, IORING_OP_SEND_ZC, 0, p->client.fd, 9000));
	p->server.read_calls = -1;
	while (p->server.read < 9000)
		took(&p->server, request(&ring, IORING_OP_RECV, 0, p->server.fd, 9000));
	close(ring.fd);
}

static void uring_read_write(struct pair *p)
{
	struct ring ring = ring_of();
	wrote(&p->client, request(&ring, IORING_OP_WRITE, 0, p->client.fd, 321));
	took(&p->server, request(&ring, IORING_OP_READ, 0, p->server.fd, 1000));
	close(ring.fd);
}

static const struct {
	const char *name;
	void (*run)(struct pair *);
} CASES[] = {
	{"read_write", read_write},
	{"vectors", vectors},
	{"send_receive", send_receive},
	{"messages", messages},
	{"many_messages", many_messages},
	{"send_file", send_file},
	{"splice_to_socket", splice_to_socket},
	{"splice_from_socket", splice_from_socket},
	{"peek", peek},
	{"truncate", truncate_stream},
	{"wait_all", wait_all},
	{"zero_copy", zero_copy},
	{"urgent", urgent},
	{"half_close", half_close},
	{"threads", threads},
	{"uring", uring},
	{"uring_zero_copy", uring_zero_copy},
	{"uring_read_write", uring_read_write},
};

static void run(const char *name, void (*work)(struct pair *), int family)
{
	struct pair pair = {0};
	pair.listener = listening(family, &pair.port);
	join_ends(&pair);
	work(&pair);
	tell(name, pair.port, &pair.client, &pair.server);
	close(pair.client.fd);
	close(pair.server.fd);
	close(pair.listener);
}

// Data in the first packet.
static void fast_open(void)
{
	struct pair pair = {0};
	pair.listener = listening(AF_INET, &pair.port);
	int queue = 16;
	CHECK(setsockopt(pair.listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof queue) == 0);
	struct sockaddr_in address = loopback(pair.port);
	pair.client.fd = socket(AF_INET, SOCK_STREAM, 0);
	wrote(&pair.client, sendto(pair.client.fd, bytes, 200, MSG_FASTOPEN, (void *)&address,
				   sizeof address));
	pair.server.fd = accept(pair.listener, NULL, NULL);
	CHECK(pair.server.fd >= 0);
	took(&pair.server, recv(pair.server.fd, bytes, 200, MSG_WAITALL));
	struct tcp_info info = information(pair.server.fd);
	CHECK(info.tcpi_options & TCPI_OPT_SYN_DATA);
	tell("fast_open", pair.port, &pair.client, &pair.server);
	close(pair.client.fd);
	close(pair.server.fd);
	close(pair.listener);
}

// A socket that is connected twice: two connections, each to its own port.
static void connected_twice(void)
{
	struct pair first = {0}, second = {0};
	first.listener = listening(AF_INET, &first.port);
	second.listener = listening(AF_INET, &second.port);
	join_ends(&first);
	wrote(&first.client, write(first.client.fd, bytes, 10));
	took(&first.server, read(first.server.fd, bytes, 100));
	tell("connected_first", first.port, &first.client, &first.server);
	struct sockaddr nothing = {.sa_family = AF_UNSPEC};
	CHECK(connect(first.client.fd, &nothing, sizeof nothing) == 0);
	struct sockaddr_in address = loopback(second.port);
	second.client.fd = first.client.fd;
	CHECK(connect(second.client.fd, (void *)&address, sizeof address) == 0);
	second.server.fd = accept(second.listener, NULL, NULL);
	CHECK(second.server.fd >= 0);
	wrote(&second.client, write(second.client.fd, bytes, 25));
	took(&second.server, read(second.server.fd, bytes, 100));
	tell("connected_again", second.port, &second.client, &second.server);
	close(second.client.fd);
	close(first.server.fd);
	close(second.server.fd);
	close(first.listener);
	close(second.listener);
}

// As the one above, but left unconnected: what it counted before must not be lost.
static void disconnected(void)
{
	struct pair pair = {0};
	pair.listener = listening(AF_INET, &pair.port);
	join_ends(&pair);
	wrote(&pair.client, write(pair.client.fd, bytes, 15));
	took(&pair.server, read(pair.server.fd, bytes, 100));
	tell("disconnected", pair.port, &pair.client, &pair.server);
	struct sockaddr nothing = {.sa_family = AF_UNSPEC};
	CHECK(connect(pair.client.fd, &nothing, sizeof nothing) == 0);
	close(pair.client.fd);
	close(pair.server.fd);
	close(pair.listener);
}

static void not_blocking(void)
{
	struct pair pair = {0};
	pair.listener = listening(AF_INET, &pair.port);
	struct sockaddr_in address = loopback(pair.port);
	pair.client.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int result = connect(pair.client.fd, (void *)&address, sizeof address);
	CHECK(result == 0 || errno == EINPROGRESS);
	struct pollfd event = {.fd = pair.client.fd, .events = POLLOUT};
	CHECK(poll(&event, 1, 10000) == 1);
	pair.server.fd = accept(pair.listener, NULL, NULL);
	CHECK(pair.server.fd >= 0);
	wrote(&pair.client, write(pair.client.fd, bytes, 5));
	took(&pair.server, read(pair.server.fd, bytes, 100));
	tell("not_blocking", pair.port, &pair.client, &pair.server);
	close(pair.client.fd);
	close(pair.server.fd);
	close(pair.listener);
}

// A socket that is connected to itself: one socket is both ends.
static void to_itself(void)
{
	struct end end = {0};
	unsigned port = 20000 + getpid() % 10000;
	struct sockaddr_in address = loopback(port);
	end.fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(end.fd, (void *)&address, sizeof address) == 0);
	CHECK(connect(end.fd, (void *)&address, sizeof address) == 0);
	wrote(&end, write(end.fd, bytes, 44));
	took(&end, read(end.fd, bytes, 100));
	tell("to_itself", port, &end, &end);
	close(end.fd);
}

// Two listeners on one port.
static void shared_port(void)
{
	struct pair pair = {0};
	int one = 1, fds[2];
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(setsockopt(fds[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0);
		CHECK(bind(fds[i], (void *)&address, sizeof address) == 0 && listen(fds[i], 8) == 0);
		CHECK(getsockname(fds[i], (void *)&address, &length) == 0);
	}
	pair.port = ntohs(address.sin_port);
	pair.client.fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(pair.client.fd, (void *)&address, sizeof address) == 0);
	struct pollfd events[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
	CHECK(poll(events, 2, 10000) == 1);
	pair.server.fd = accept(fds[events[0].revents ? 0 : 1], NULL, NULL);
	CHECK(pair.server.fd >= 0);
	wrote(&pair.client, write(pair.client.fd, bytes, 60));
	took(&pair.server, read(pair.server.fd, bytes, 100));
	tell("shared_port", pair.port, &pair.client, &pair.server);
	close(pair.client.fd);
	close(pair.server.fd);
	close(fds[0]);
	close(fds[1]);
}

static void set(const char *name, const char *value)
{
	int fd = open(name, O_WRONLY);
	CHECK(fd >= 0 && write(fd, value, strlen(value)) > 0);
	close(fd);
}

static void wait_for_signal(void)
{
	sigset_t wanted;
	int signal;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	CHECK(sigwait(&wanted, &signal) == 0);
}

int main(void)
{
	sigset_t wanted;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &wanted, NULL) == 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(unshare(CLONE_NEWNET) == 0);
	struct ifreq loopback_device = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(any >= 0 && ioctl(any, SIOCSIFFLAGS, &loopback_device) == 0);
	close(any);
	// Both sides, without a cookie.
	set("/proc/sys/net/ipv4/tcp_fastopen", "519");
	printf("ready\n");
	wait_for_signal();
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
		run(CASES[i].name, CASES[i].run, AF_INET);
	run("mapped", read_write, AF_INET6);
	fast_open();
	connected_twice();
	disconnected();
	not_blocking();
	to_itself();
	shared_port();
	set("/proc/sys/net/ipv4/tcp_timestamps", "0");
	run("no_timestamps", send_receive, AF_INET);
	printf("done\n");
	wait_for_signal();
	return 0;
}
