/*
 * hostile_names NAME: a process with a thread and an abstract Unix socket that are called NAME. Its two threads
 * use the CPU and talk to each other over the socket. Prints "ready" when they do, and runs until it is killed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *name;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t length;

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static int unix_socket(void) {
    int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(end, "socket");
    return end;
}

static void use_cpu(void) {
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < 200000; i++) sum += i;
}

static void *client(void *unused) {
    (void)unused;
    check(prctl(PR_SET_NAME, name), "name the thread");
    int end = unix_socket();
    check(connect(end, (struct sockaddr *)&address, length), "connect");
    while (write(end, "x", 1) == 1) {
        use_cpu();
        usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    name = argv[1];
    /* The first byte stays 0: the name is abstract. */
    int written = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%d", name, (int)getpid());
    length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)written);
    int listener = unix_socket();
    check(bind(listener, (struct sockaddr *)&address, length), "bind");
    check(listen(listener, 1), "listen");
    pthread_t thread;
    if (pthread_create(&thread, NULL, client, NULL) != 0) check(-1, "start a thread");
    int end = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    check(end, "accept");
    char got;
    check((int)read(end, &got, 1), "read");
    printf("ready\n");
    fflush(stdout);
    while (read(end, &got, 1) == 1) use_cpu();
    return 0;
}
