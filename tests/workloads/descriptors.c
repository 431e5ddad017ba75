// Connections whose sockets change hands: between a process and its child, over a Unix socket, and by
// the death of who had them.
//
// Usage: descriptors. Writes "ready", waits for SIGUSR1, and writes one line per case: name, port, pid
// of the client, pid of the server, bytes that the client wrote, bytes that the server wrote. Ends
// with "done" and waits for the signal once more.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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

static char bytes[1000];

static int listening(unsigned *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(fd, (void *)&address, length) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, (void *)&address, &length) == 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static int connected(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fd, (void *)&address, sizeof address) == 0);
	return fd;
}

static pid_t child(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	return pid;
}

static void reap(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void answer(int fd)
{
	CHECK(recv(fd, bytes, 100, MSG_WAITALL) == 100);
	CHECK(write(fd, bytes, 30) == 30);
	exit(0);
}

static void ask(int fd)
{
	CHECK(write(fd, bytes, 100) == 100);
	CHECK(recv(fd, bytes, 30, MSG_WAITALL) == 30);
}

static void tell(const char *name, unsigned port, pid_t server)
{
	printf("%s %u %d %d 100 30\n", name, port, getpid(), server);
}

// A server that forks for each connection: the child reads and writes.
static void forked(void)
{
	unsigned port;
	int listener = listening(&port), client = connected(port);
	int server = accept(listener, NULL, NULL);
	pid_t pid = child();
	if (pid == 0)
		answer(server);
	close(server);
	ask(client);
	close(client);
	reap(pid);
	tell("forked", port, pid);
	close(listener);
}

static void send_fd(int over, int fd)
{
	char control[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec part = {bytes, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				 .msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				   .cmsg_len = CMSG_LEN(sizeof fd)};
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	CHECK(sendmsg(over, &message, 0) == 1);
}

static int receive_fd(int over)
{
	int fd;
	char control[CMSG_SPACE(sizeof fd)];
	struct iovec part = {bytes, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				 .msg_controllen = sizeof control};
	CHECK(recvmsg(over, &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

// One process accepts, another one, which was there before, gets the socket.
static void passed(void)
{
	int pipes[2];
	unsigned port;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pipes) == 0);
	pid_t pid = child();
	if (pid == 0)
		answer(receive_fd(pipes[1]));
	int listener = listening(&port), client = connected(port);
	int server = accept(listener, NULL, NULL);
	send_fd(pipes[0], server);
	close(server);
	ask(client);
	close(client);
	reap(pid);
	tell("passed", port, pid);
	close(listener);
	close(pipes[0]);
	close(pipes[1]);
}

// Dies with its socket open.
static void killed(void)
{
	unsigned port;
	int listener = listening(&port);
	pid_t pid = child();
	if (pid == 0) {
		int client = connected(port);
		ask(client);
		pause();
	}
	int server = accept(listener, NULL, NULL);
	CHECK(recv(server, bytes, 100, MSG_WAITALL) == 100);
	CHECK(write(server, bytes, 30) == 30);
	// Until the child has read all: then nothing is left that would make a reset of the end.
	int left;
	do {
		poll(NULL, 0, 1);
		CHECK(waitpid(pid, NULL, WNOHANG) == 0);
		char path[40], text[200] = {0};
		snprintf(path, sizeof path, "/proc/%d/wchan", pid);
		FILE *file = fopen(path, "r");
		CHECK(file && fread(text, 1, sizeof text - 1, file) > 0);
		fclose(file);
		left = strstr(text, "pause") == NULL;
	} while (left);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	CHECK(read(server, bytes, 1) == 0);
	close(server);
	printf("killed %u %d %d 100 30\n", port, pid, getpid());
	close(listener);
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
	printf("ready\n");
	wait_for_signal();
	forked();
	passed();
	killed();
	printf("done\n");
	wait_for_signal();
	return 0;
}
