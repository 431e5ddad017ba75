// Opens TCP connections to itself at a known rate and says what it has done with them.
//
//   connections hold COUNT BYTES     COUNT connections stay open; at SIGUSR1 each end of each sends
//                                    BYTES once more
//   connections churn RATE MS BYTES  RATE new connections a second for MS milliseconds, each closed
//                                    after its client has sent BYTES and got twice as many
//
// Prints "ready" when it has begun to listen (hold: when all connections are open) and waits for
// SIGUSR1, then works and prints a line with its totals over both ends of all connections, and ends at
// the next SIGUSR1.
//
// The connections go to many addresses of 127.0.0.0/8: to one, ports would run out.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ADDRESSES 64
#define MAX_BYTES 65536

static struct {
  uint64_t connections, writes, written, reads, got;
} done;

static char buffer[MAX_BYTES];

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int listener(uint16_t *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in own = {.sin_family = AF_INET};
  socklen_t length = sizeof own;
  if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) || listen(fd, 4096) ||
      getsockname(fd, (struct sockaddr *)&own, &length))
    fail("listen");
  *port = own.sin_port;
  return fd;
}

static void open_one(int listening, uint16_t port, uint64_t number, int ends[2]) {
  struct sockaddr_in to = {
      .sin_family = AF_INET,
      .sin_port = port,
      .sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)(number % ADDRESSES)),
  };
  ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&to, sizeof to)) fail("connect");
  ends[1] = accept(listening, NULL, NULL);
  if (ends[1] < 0) fail("accept");
  int yes = 1;
  setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  done.connections++;
}

static void pass(int from, int to, size_t bytes) {
  if (send(from, buffer, bytes, 0) != (ssize_t)bytes) fail("send");
  done.writes++;
  done.written += bytes;
  while (bytes) {
    ssize_t count = recv(to, buffer, bytes, 0);
    if (count <= 0) fail("recv");
    done.reads++;
    done.got += (uint64_t)count;
    bytes -= (size_t)count;
  }
}

static void wait_for_signal(void) {
  sigset_t set;
  int signal;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  fflush(stdout);
  sigwait(&set, &signal);
}

static void report(uint64_t began) {
  printf("{\"pid\":%d,\"connections\":%llu,\"writes\":%llu,\"written\":%llu,\"reads\":%llu,"
         "\"got\":%llu,\"lasted_ns\":%llu}\n",
         getpid(), (unsigned long long)done.connections, (unsigned long long)done.writes,
         (unsigned long long)done.written, (unsigned long long)done.reads,
         (unsigned long long)done.got, (unsigned long long)(now() - began));
  wait_for_signal();
}

static void hold(uint64_t count, size_t bytes) {
  uint16_t port;
  int listening = listener(&port);
  int(*all)[2] = calloc(count, sizeof *all);
  if (!all) fail("calloc");
  for (uint64_t i = 0; i < count; i++) {
    open_one(listening, port, i, all[i]);
    pass(all[i][0], all[i][1], bytes);
    pass(all[i][1], all[i][0], bytes);
  }
  puts("ready");
  wait_for_signal();
  uint64_t began = now();
  for (uint64_t i = 0; i < count; i++) {
    pass(all[i][0], all[i][1], bytes);
    pass(all[i][1], all[i][0], bytes);
  }
  report(began);
}

static void churn(uint64_t rate, uint64_t milliseconds, size_t bytes) {
  uint16_t port;
  int listening = listener(&port);
  puts("ready");
  wait_for_signal();
  uint64_t began = now(), end = began + milliseconds * 1000000;
  for (uint64_t number = 0; now() < end; number++) {
    // In time for the rate; when late, without a pause until it has caught up.
    uint64_t due = began + number * 1000000000 / rate;
    if (now() < due) {
      struct timespec until = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    int ends[2];
    open_one(listening, port, number, ends);
    pass(ends[0], ends[1], bytes);
    pass(ends[1], ends[0], 2 * bytes);
    close(ends[0]);
    close(ends[1]);
  }
  report(began);
}

int main(int argc, char **argv) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  uint64_t number[4] = {0};
  for (int i = 2; i < argc && i < 6; i++) number[i - 2] = strtoull(argv[i], NULL, 10);
  if (argc == 4 && !strcmp(argv[1], "hold") && number[1] && number[1] <= MAX_BYTES)
    hold(number[0], number[1]);
  else if (argc == 5 && !strcmp(argv[1], "churn") && number[0] && number[2] &&
           number[2] <= MAX_BYTES / 2)
    churn(number[0], number[1], number[2]);
  else {
    fputs("usage: connections hold COUNT BYTES | churn RATE MS BYTES\n", stderr);
    return 2;
  }
  return 0;
}
